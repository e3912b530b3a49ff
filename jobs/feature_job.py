"""Feature job: events and feedback -> scheduler -> feature function -> online store -> changes.

Submitted by ``freshet submit``, or by hand::

    flink run -d -py jobs/feature_job.py --jarfile freshet-flink.jar \
        -pyexec .venv/bin/python -pyclientexec .venv/bin/python \
        --table my_table.py --config freshet.yaml

With ``--table`` several times, one job maintains several tables.

The graph is drawn in ``freshet/pipeline/feature.py``.
"""

from __future__ import annotations

import argparse
import dataclasses

from freshet.config import Config
from freshet.pipeline.environment import job_environment
from freshet.pipeline.feature import build_feature_job, job_settings
from freshet.submission import feature_job_name
from freshet.table import load_table


def main() -> None:
    """Reads the table definition and the deployment's config, and submits the job."""
    parser = argparse.ArgumentParser(description="Maintain the features of one table, or several.")
    parser.add_argument(
        "--table", required=True, action="append", help="table definition, .py or .yaml"
    )
    parser.add_argument("--config", required=True, help="deployment config, .yaml")
    parser.add_argument("--subtasks", type=int, help="parallelism in place of the table's")
    arguments = parser.parse_args()

    tables = [load_table(file) for file in arguments.table]
    if arguments.subtasks:
        tables = [dataclasses.replace(table, parallelism=arguments.subtasks) for table in tables]
    config = Config.load(arguments.config)
    env = job_environment(job_settings(tables))
    for table in tables:
        # Without a prefix the state of a job of one table stays readable.
        build_feature_job(env, table, config, f"{table.name}/" if len(tables) > 1 else "")
    env.execute(feature_job_name(*(table.name for table in tables)))


if __name__ == "__main__":
    main()
