"""Submits every job of a deployment that does not run yet: the one-shot service ``submit``.

::

    python docker/submit.py --tables docker/tables --home docker/config/home.yaml \
        --region docker/config/destination.yaml

It takes all definitions of the folder of tables. Each region gets a job for the tables that name
it, home a multicast job for those that name other regions and a feature job for each table; one
client submits them all.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from freshet.config import Config
from freshet.errors import ConfigError, FreshetError, StackError
from freshet.regions import WAYPOINT
from freshet.stack.flink_rest import ENDED_STATES, FlinkRest
from freshet.submission import (
    PreparedJob,
    prepare_multicast,
    prepare_region,
    prepare_tables,
    region_job_name,
    submit_together,
    tables_of_job,
    tables_of_multicast_job,
)
from freshet.table import FeatureTable, load_table

_SUFFIXES = (".py", ".yaml", ".yml")

Tables = dict[Path, FeatureTable]


def tables_in(folder: Path) -> Tables:
    """The tables that a folder's files define.

    Raises:
        ConfigError: there is none, or a definition is wrong.
    """
    files = sorted(file for file in folder.glob("*") if file.suffix in _SUFFIXES)
    if not files:
        raise ConfigError([f"no table definition (.py, .yaml) is in {folder}"], "tables")
    return {file: load_table(file) for file in files}


def missing_jobs(
    tables: Tables, home: Config, regions: Sequence[Config], running: Sequence[str]
) -> list[PreparedJob]:
    """The jobs that are not among the running ones, with regions' first: they await what is sent.

    Args:
        tables: all of the deployment.
        home: configuration of the home region.
        regions: configurations of the others.
        running: names of the jobs that run.
    """
    jobs = []
    for config in regions:
        kept = [file for file in tables if _is_for(config, tables[file])]
        if kept and region_job_name(config.region) not in running:
            jobs.append(prepare_region(kept, config))
    sent_already = {table for name in running for table in tables_of_multicast_job(name)}
    sent = [
        file
        for file, table in tables.items()
        if set(table.regions) - {home.home_region} and table.name not in sent_already
    ]
    if sent:
        jobs.append(prepare_multicast(sent, home))
    maintained = {table for name in running for table in tables_of_job(name)}
    jobs += [
        prepare_tables([file], home)
        for file, table in tables.items()
        if table.name not in maintained
    ]
    return jobs


def _is_for(region: Config, table: FeatureTable) -> bool:
    return region.role == WAYPOINT or region.region in table.regions


def submit_missing(folder: Path, home: Config, regions: Sequence[Config]) -> None:
    """Submits what does not run, waits until it does, and prints it.

    Raises:
        FreshetError: a definition is wrong, a server does not answer, or a job does not run.
    """
    tables = tables_in(folder)
    if home.flink_rest is None:
        raise StackError("no Flink is configured; set flink_rest in the home region's file")
    rest = FlinkRest(home.flink_rest)
    there = [job for job in rest.jobs() if job.state not in ENDED_STATES]
    waiting = [job for job in there if not rest.is_running(job.id)]
    for job in there:
        print(f"Job {job.name} {'is there, and waits' if job in waiting else 'runs already'}.")
    missing = missing_jobs(tables, home, regions, [job.name for job in there])
    submitted = submit_together(missing) if missing else []
    for submission in submitted:
        print(f"Job {submission.job.name} is {submission.job.state}: {submission.job.id}")
        for warning in submission.warnings:
            print(f"  {warning}")
    if waiting:
        raise StackError(
            "; ".join(
                f"not all of job {job.name} ({job.id}) runs, which is {job.state}:"
                f" {rest.failure(job.id)}"
                for job in waiting
            )
            + "; what waits starts by itself once there are slots and its servers answer"
        )


def main() -> None:
    """Reads the configurations and submits."""
    parser = argparse.ArgumentParser(description="Submit every job that does not run yet.")
    parser.add_argument("--tables", required=True, type=Path, help="folder of table definitions")
    parser.add_argument("--home", required=True, type=Path, help="the home region's configuration")
    parser.add_argument(
        "--region", action="append", default=[], type=Path, help="another region's; any number"
    )
    arguments = parser.parse_args()
    try:
        submit_missing(
            arguments.tables,
            Config.load(arguments.home),
            [Config.load(file) for file in arguments.region],
        )
    except FreshetError as error:
        sys.exit(f"submit: {error}")


if __name__ == "__main__":
    main()
