"""Submits jobs to Flink, as ``flink run -py`` by hand would."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from freshet.config import Config, field_names, stack_home
from freshet.config_sources import variable_of
from freshet.errors import ConfigError, FreshetError, JobError, StackError
from freshet.kafka_access import BrokerRefusesError
from freshet.stack.flink_rest import FlinkRest, JobStatus, root_cause
from freshet.stack.layout import flink_home, flink_jar, job_script
from freshet.topics import (
    DEFAULT_PARTITIONS,
    Log,
    create_missing_topics,
    inbox_of_region,
    progress_topic,
    topics_of_multicast,
    topics_of_region,
    topics_of_table,
)

if TYPE_CHECKING:
    from freshet.stack.stack import Stack
    from freshet.table import FeatureTable

SUBMIT_DEADLINE_S = 180.0
"""How long Flink's client may take to build and submit a job."""

SUBMIT_MORE_S = 60.0
"""How much longer for each further job of the same client."""

RUNNING_DEADLINE_S = 120.0
"""How long a submitted job may take until all of its subtasks run."""

_POLL_INTERVAL_S = 0.2
_MAX_LOG_NAME = 100
_ENDED = ("FINISHED", "CANCELED", "FAILED")
_JOB_ID = re.compile(r"submitted with JobID ([0-9a-f]{32})")
_PYTHON_ERROR = re.compile(r"^(?:[A-Za-z_]\w*\.)*([A-Za-z_]\w*(?:Error|Exception)): (.+)$")


_JOB_PREFIX = "freshet-"
_TABLE_SEPARATOR = "+"  # in no table's name


def feature_job_name(*tables: str) -> str:
    """Name in Flink of the feature job of one table, or of several."""
    return _JOB_PREFIX + _TABLE_SEPARATOR.join(tables)


def tables_of_job(job_name: str) -> list[str]:
    """Tables that a feature job of this name maintains; none of another job."""
    if not job_name.startswith(_JOB_PREFIX):
        return []
    return job_name.removeprefix(_JOB_PREFIX).split(_TABLE_SEPARATOR)


_MULTICAST_PREFIX = "multicast "
_REGION_PREFIX = "region "


def multicast_job_name(*tables: str) -> str:
    """Name in Flink of the job that sends these tables to other regions."""
    return _MULTICAST_PREFIX + _TABLE_SEPARATOR.join(tables)


def tables_of_multicast_job(job_name: str) -> list[str]:
    """Tables that a multicast job of this name sends; none of another job."""
    if not job_name.startswith(_MULTICAST_PREFIX):
        return []
    return job_name.removeprefix(_MULTICAST_PREFIX).split(_TABLE_SEPARATOR)


def region_job_name(region: str) -> str:
    """Name in Flink of a region's job."""
    return _REGION_PREFIX + region


@dataclass(frozen=True)
class Submission:
    """A job that runs, and what was done for it."""

    tables: tuple[str, ...]
    """Names of its tables."""

    job: JobStatus
    topics_created: list[str]
    log: Path
    """Output of Flink's client."""

    warnings: tuple[str, ...] = ()
    """What could not be done, and does not keep the job from running."""


@dataclass(frozen=True)
class _Script:
    """A job's script and what it is run with."""

    name: str
    tables: tuple[Path, ...]
    parallelism: int
    savepoint: str | None = None
    python_files: tuple[Path, ...] = ()
    options: tuple[str, ...] = ()
    """Further arguments that are the script's own."""


@dataclass(frozen=True)
class PreparedJob:
    """A job that has been checked, and whose topics there are; :func:`submit_together` takes it."""

    name: str
    """Tells it from others; names the log."""

    tables: tuple[str, ...]
    """Names of its tables."""

    script: _Script
    config: Config
    topics_created: list[str]
    warnings: tuple[str, ...] = ()


def submit_together(
    jobs: Sequence[PreparedJob],
    *,
    stack: Stack | None = None,
    running_deadline_s: float = RUNNING_DEADLINE_S,
) -> list[Submission]:
    """Submits jobs by one run of Flink's client, and waits until all of them run.

    Most of a submission is the client's own start, so several jobs take little longer than one.
    They have nothing else in common, and where one is refused, those before it run.

    Args:
        jobs: at least one; several have the same Flink, and neither savepoints nor Python files.
        stack: the embedded stack, if the configurations are its own.
        running_deadline_s: how long the jobs may take until all of their subtasks run, seconds.

    Returns:
        As many submissions, in the same order.

    Raises:
        ConfigError: the jobs cannot share a client.
        JobError: Flink refused a job, or one does not run.
        StackError: Flink does not answer.
    """
    _check_can_share_a_client(jobs)
    rest = _flink(jobs[0].config)
    if len(jobs) > 1:
        _check_slots(rest, sum(job.script.parallelism for job in jobs), stack)
    log = _log_file("+".join(job.name for job in jobs), stack)
    with tempfile.TemporaryDirectory(prefix="freshet-submit-") as scratch:
        command = _command(jobs, Path(scratch))
        ids = _run_client(command, _environment(stack, Path(scratch)), log, len(jobs))
    deadline = time.monotonic() + running_deadline_s
    for job_id in ids:
        _wait_until_running(rest, job_id, max(0.0, deadline - time.monotonic()))
    return [
        Submission(job.tables, rest.job(job_id), job.topics_created, log, job.warnings)
        for job, job_id in zip(jobs, ids, strict=True)
    ]


def submit_table(
    file: Path,
    config: Config,
    *,
    stack: Stack | None = None,
    parallelism: int | None = None,
    partitions: int = DEFAULT_PARTITIONS,
    savepoint: str | None = None,
    python_files: Sequence[Path] = (),
    running_deadline_s: float = RUNNING_DEADLINE_S,
) -> Submission:
    """Creates a table's missing topics, submits its feature job, and waits until it runs.

    The arguments and errors are those of :func:`submit_tables`.
    """
    return submit_tables(
        [file],
        config,
        stack=stack,
        parallelism=parallelism,
        partitions=partitions,
        savepoint=savepoint,
        python_files=python_files,
        running_deadline_s=running_deadline_s,
    )


def submit_tables(
    files: Sequence[Path],
    config: Config,
    *,
    stack: Stack | None = None,
    parallelism: int | None = None,
    partitions: int = DEFAULT_PARTITIONS,
    savepoint: str | None = None,
    python_files: Sequence[Path] = (),
    running_deadline_s: float = RUNNING_DEADLINE_S,
) -> Submission:
    """Submits one feature job that maintains one or several tables, and waits until it runs.

    Several tables in one job share its slots, its checkpoints and its fate, and start faster than
    as many jobs.

    Args:
        files: the table definitions, Python or YAML; of several, the parallelism and the maximal
            parallelism must be the same.
        config: of the deployment.
        stack: the embedded stack, if ``config`` is its own.
        parallelism: in place of the table's.
        partitions: of the topics that are created and keyed by entity.
        savepoint: path to start from; None to start without state.
        python_files: further modules that the feature function imports on the TaskManagers.
        running_deadline_s: how long the job may take until all of its subtasks run, seconds.

    Raises:
        ConfigError: the definition is wrong; with every problem.
        JobError: a job of this table runs already, Flink refused this one, or it does not run.
        StoreUnavailableError: the home region's Redis does not answer.
        StackError: Flink does not answer.
    """
    job = prepare_tables(
        files,
        config,
        stack=stack,
        parallelism=parallelism,
        partitions=partitions,
        savepoint=savepoint,
        python_files=python_files,
    )
    return submit_together([job], stack=stack, running_deadline_s=running_deadline_s)[0]


def prepare_tables(
    files: Sequence[Path],
    config: Config,
    *,
    stack: Stack | None = None,
    parallelism: int | None = None,
    partitions: int = DEFAULT_PARTITIONS,
    savepoint: str | None = None,
    python_files: Sequence[Path] = (),
) -> PreparedJob:
    """Does all of :func:`submit_tables` that comes before the job itself."""
    from freshet.table import load_table

    config.check_secrets_of_jobs()
    rest = _flink(config)
    tables = [load_table(file) for file in files]
    _check_can_share_a_job(tables)
    subtasks = parallelism or tables[0].parallelism
    _check_slots(rest, subtasks, stack)
    _check_not_running(rest, tables)
    created = ready_for_tables(tables, config, partitions)
    name = _TABLE_SEPARATOR.join(table.name for table in tables)
    script = _Script("feature_job", tuple(files), subtasks, savepoint, tuple(python_files))
    return PreparedJob(name, _names(tables), script, config, created)


def ready_for_tables(
    tables: Sequence[FeatureTable], config: Config, partitions: int = DEFAULT_PARTITIONS
) -> list[str]:
    """Makes what a feature job needs and Flink does not make: topics, and definitions for clients.

    Returns:
        The topics that were not there.

    Raises:
        ConfigError: a secret is written out.
        StoreUnavailableError: the home region's Redis does not answer.
        FreshetError: Kafka does not answer.
    """
    from freshet.store.connection import check_writer, connect
    from freshet.store.registry import register_table

    config.check_secrets_of_jobs()
    created = []
    for table in tables:
        check_writer(config, config.home_region, table.name)
    for table in tables:
        definition = table.to_dict(topic_prefix=config.topic_prefix)
        created += create_missing_topics(config, topics_of_table(definition, partitions))
    redis = connect(config, config.home_region)
    try:
        for table in tables:
            register_table(
                redis, table, store_prefix=config.store_prefix, topic_prefix=config.topic_prefix
            )
    finally:
        redis.close()
    return created


def submit_multicast(
    files: Sequence[Path],
    config: Config,
    *,
    stack: Stack | None = None,
    parallelism: int = 1,
    savepoint: str | None = None,
    running_deadline_s: float = RUNNING_DEADLINE_S,
) -> Submission:
    """Submits the job that sends tables to the regions that serve them; waits until it runs.

    The inboxes of regions whose brokers answer are made, too; a region that does not answer makes
    its own when its job is submitted.

    Args:
        files: the tables' definitions.
        config: of the home region.
        stack: the embedded stack, if ``config`` is its own.
        parallelism: subtasks, each of which has links of its own to every next hop.
        savepoint: path to start from; None to start without state: regions then catch up.
        running_deadline_s: how long the job may take until all of its subtasks run, seconds.

    Raises:
        ConfigError: a table cannot be sent, or the planner's profiles are wrong.
        JobError: a job sends one of the tables already, Flink refused this one, or it does not run.
        StackError: Flink does not answer.
        FreshetError: home's Kafka does not answer.
    """
    job = prepare_multicast(
        files, config, stack=stack, parallelism=parallelism, savepoint=savepoint
    )
    return submit_together([job], stack=stack, running_deadline_s=running_deadline_s)[0]


def prepare_multicast(
    files: Sequence[Path],
    config: Config,
    *,
    stack: Stack | None = None,
    parallelism: int = 1,
    savepoint: str | None = None,
) -> PreparedJob:
    """Does all of :func:`submit_multicast` that comes before the job itself."""
    from freshet.table import load_table

    config.check_secrets_of_jobs()
    rest = _flink(config)
    tables = [load_table(file) for file in files]
    _check_slots(rest, parallelism, stack)
    for job in _unended(rest):
        for name in {table.name for table in tables} & set(tables_of_multicast_job(job.name)):
            raise JobError(
                f"table {name} is sent by job {job.id} already, which is {job.state}; cancel it"
                " first"
            )
    created, warnings = ready_for_multicast(tables, config)
    name = multicast_job_name(*(table.name for table in tables))
    script = _Script("multicast_job", tuple(files), parallelism, savepoint)
    return PreparedJob(name, _names(tables), script, config, created, tuple(warnings))


def ready_for_multicast(
    tables: Sequence[FeatureTable], config: Config, partitions: int = DEFAULT_PARTITIONS
) -> tuple[list[str], list[str]]:
    """Makes the topics of a multicast job, and the inboxes of regions whose brokers answer.

    Args:
        tables: to send.
        config: of the home region.
        partitions: of the tables' changes, where their feature jobs have not made them yet.

    Returns:
        The topics that were not there, and what could not be made and does not keep the job from
        running.

    Raises:
        ConfigError: a table cannot be sent, or the planner's profiles are wrong.
        FreshetError: home's Kafka does not answer.
    """
    from freshet.multicast.building import planner_settings

    config.check_secrets_of_jobs()
    definitions = [table.to_dict(topic_prefix=config.topic_prefix) for table in tables]
    # What is wrong with it is told before anything is made.
    planner_settings(tables, config, dict.fromkeys((t.name for t in tables), Log("", 1)))
    created = create_missing_topics(config, topics_of_multicast(config, definitions, partitions))
    warnings = []
    for region in config.regions.keys() - {config.home_region}:
        try:
            created += create_missing_topics(config, [inbox_of_region(config, region)], region)
        except BrokerRefusesError:
            raise  # it would refuse the job, too
        except FreshetError as error:
            warnings.append(str(error))
    return created, warnings


def submit_region(
    files: Sequence[Path],
    config: Config,
    *,
    stack: Stack | None = None,
    parallelism: int = 1,
    savepoint: str | None = None,
    clock_ahead_ms: int = 0,
    running_deadline_s: float = RUNNING_DEADLINE_S,
) -> Submission:
    """Submits a region's job, which keeps tables there or passes them on; waits until it runs.

    Args:
        files: definitions of all tables that the region serves, or passes on.
        config: of the region.
        stack: the embedded stack, if ``config`` is its own.
        parallelism: subtasks; more than the inbox has partitions have nothing to do.
        savepoint: path to start from; None to start without state: the region then catches up.
        clock_ahead_ms: for tests: what the region's clock is taken to be ahead of its machine's;
            may be negative.
        running_deadline_s: how long the job may take until all of its subtasks run, seconds.

    Raises:
        ConfigError: a table is not for this region.
        JobError: the region has a job already, Flink refused this one, or it does not run.
        StackError: Flink does not answer.
        FreshetError: the region's Kafka, or home's, does not answer.
    """
    job = prepare_region(
        files,
        config,
        stack=stack,
        parallelism=parallelism,
        savepoint=savepoint,
        clock_ahead_ms=clock_ahead_ms,
    )
    return submit_together([job], stack=stack, running_deadline_s=running_deadline_s)[0]


def prepare_region(
    files: Sequence[Path],
    config: Config,
    *,
    stack: Stack | None = None,
    parallelism: int = 1,
    savepoint: str | None = None,
    clock_ahead_ms: int = 0,
) -> PreparedJob:
    """Does all of :func:`submit_region` that comes before the job itself."""
    from freshet.table import load_table

    config.check_secrets_of_jobs()
    rest = _flink(config)
    tables = [load_table(file) for file in files]
    _check_slots(rest, parallelism, stack)
    name = region_job_name(config.region)
    for job in _unended(rest):
        if job.name == name:
            raise JobError(
                f"region {config.region} has job {job.id} already, which is {job.state}; cancel"
                " it first"
            )
    created = ready_for_region(tables, config)
    clock = (f"--clock-ahead-ms={clock_ahead_ms}",) if clock_ahead_ms else ()
    script = _Script("region_job", tuple(files), parallelism, savepoint, options=clock)
    return PreparedJob(name, _names(tables), script, config, created)


def ready_for_region(tables: Sequence[FeatureTable], config: Config) -> list[str]:
    """Makes the topics of a region's job, once its Redis lets it in.

    Returns:
        Those that were not there.

    Raises:
        ConfigError: a table is not for this region.
        StoreUnavailableError: the region's Redis does not answer, or refuses.
        FreshetError: the region's Kafka, or home's, does not answer.
    """
    return ready_within_region(tables, config) + ready_for_reports(config)


def ready_within_region(tables: Sequence[FeatureTable], config: Config) -> list[str]:
    """Does what :func:`ready_for_region` does in the region itself, without home's Kafka.

    Returns:
        The topics that were not there.

    Raises:
        ConfigError: a table is not for this region.
        StoreUnavailableError: the region's Redis does not answer, or refuses.
        FreshetError: the region's Kafka does not answer.
    """
    from freshet.multicast.building import region_settings
    from freshet.store.connection import check_writer

    config.check_secrets_of_jobs()
    region_settings(tables, config)
    if config.region in config.redis:
        for table in tables:
            check_writer(config, config.region, table.name)
    return create_missing_topics(config, topics_of_region(config))


def ready_for_reports(config: Config) -> list[str]:
    """Makes the topic that regions report to, at home, where the jobs make it, too.

    Returns:
        It, if it was not there.

    Raises:
        FreshetError: home's Kafka does not answer.
    """
    return create_missing_topics(config, [progress_topic(config)], config.home_region)


def _names(tables: Sequence[FeatureTable]) -> tuple[str, ...]:
    return tuple(table.name for table in tables)


def _command(jobs: Sequence[PreparedJob], scratch: Path) -> list[str]:
    """What runs the jobs' scripts in one client; their configurations are put into a folder."""
    config, scripts = jobs[0].config, [job.script for job in jobs]
    assert config.flink_rest is not None, "checked by the caller"
    address = urlsplit(config.flink_rest)
    arguments = []
    for number, job in enumerate(jobs):
        file = scratch / f"config-{number}.yaml"
        job.config.write(file)
        arguments.append(_arguments(job.script, file))
    entry, given = scripts[0].name, arguments[0]
    if len(jobs) > 1:
        entry = "together"
        given = [
            text
            for script, texts in zip(scripts, arguments, strict=True)
            for text in ("--script", str(job_script(script.name)), *texts)
        ]
    savepoint = scripts[0].savepoint
    files = ",".join(str(path.absolute()) for path in scripts[0].python_files)
    return [
        "bash",
        str(flink_home() / "bin" / "flink"),
        "run",
        "--detached",
        *("--jobmanager", address.netloc if address.scheme == "http" else config.flink_rest),
        # A script's own --subtasks says the same for its job.
        *(("--parallelism", str(scripts[0].parallelism)) if len(jobs) == 1 else ()),
        *(("--fromSavepoint", savepoint) if savepoint else ()),
        *("--jarfile", str(flink_jar())),
        *("--python", str(job_script(entry))),
        *("-pyexec", config.flink_python or sys.executable),
        *("-pyclientexec", sys.executable),
        *(("-pyfs", files) if files else ()),
        *given,
    ]


def _arguments(script: _Script, config_file: Path) -> list[str]:
    """The arguments of a job's script."""
    return [
        *(text for file in script.tables for text in ("--table", str(file.absolute()))),
        *("--config", str(config_file)),
        *("--subtasks", str(script.parallelism)),
        *script.options,
    ]


def _environment(stack: Stack | None, scratch: Path) -> dict[str, str]:
    environment = dict(os.environ) if stack is None else stack.flink.client_environment()
    if stack is None:
        environment.setdefault("FLINK_LOG_DIR", str(scratch))
    # The job's file has what they say already, and over it what the command line says.
    overridden = {variable_of(name) for name in field_names()}
    return {name: value for name, value in environment.items() if name not in overridden}


def _log_file(name: str, stack: Stack | None) -> Path:
    folder = stack.logs if stack is not None else stack_home() / "logs"
    folder.mkdir(parents=True, exist_ok=True)
    # Many tables make a name that is longer than a file's may be.
    return folder / f"submit-{name[:_MAX_LOG_NAME].replace(' ', '-').replace(':', '-')}.log"


def _run_client(
    command: list[str], environment: dict[str, str], log: Path, count: int
) -> list[str]:
    """Runs Flink's client and returns the ids of the jobs that it submitted, in their order."""
    deadline_s = SUBMIT_DEADLINE_S + (count - 1) * SUBMIT_MORE_S
    try:
        with log.open("w", encoding="utf-8") as output:
            code = subprocess.run(
                command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=deadline_s,
                check=False,
            ).returncode
    except subprocess.TimeoutExpired as error:
        raise JobError(
            f"Flink's client did not end within {deadline_s:.0f} s; see {log}"
        ) from error
    text = log.read_text(encoding="utf-8", errors="replace")
    submitted = list(dict.fromkeys(_JOB_ID.findall(text)))
    if len(submitted) != count:
        what = f"{len(submitted)} of {count} jobs" if count > 1 else "no job"
        raise JobError(
            f"Flink's client submitted {what} (exit code {code}): {_reason(text)}; see {log}"
        )
    return submitted


def _reason(output: str) -> str:
    """What a failed client wants to say: the job script's own error, else Java's root cause."""
    _, traceback, rest = output.rpartition("Traceback (most recent call last):")
    errors = filter(None, map(_PYTHON_ERROR.match, rest.splitlines())) if traceback else ()
    first = next(iter(errors), None)
    return root_cause(output) if first is None else f"{first[1]}: {first[2]}"


def _check_can_share_a_job(tables: Sequence[FeatureTable]) -> None:
    names = [table.name for table in tables]
    problems = [f"table {name} is given twice" for name in names if names.count(name) > 1]
    if len({(table.parallelism, table.max_parallelism) for table in tables}) > 1:
        problems.append("tables of one job must have the same parallelism and max_parallelism")
    if problems:
        raise ConfigError(sorted(set(problems)), f"tables {', '.join(names)}")


def _check_can_share_a_client(jobs: Sequence[PreparedJob]) -> None:
    if len(jobs) == 1:
        return
    problems = [
        f"job {job.name} has a savepoint or Python files, which are a client's; submit it alone"
        for job in jobs
        if job.script.savepoint or job.script.python_files
    ]
    problems += [
        f"job {job.name} is for another Flink, or another Python; submit it alone"
        for job in jobs[1:]
        if (job.config.flink_rest, job.config.flink_python)
        != (jobs[0].config.flink_rest, jobs[0].config.flink_python)
    ]
    if problems:
        raise ConfigError(problems, "jobs of one client")


def feature_job_of(config: Config, table: str) -> JobStatus | None:
    """The feature job that maintains a table and has not ended; None if there is none.

    Raises:
        StackError: Flink is not configured, or does not answer.
    """
    return _feature_jobs(_flink(config)).get(table)


def _feature_jobs(rest: FlinkRest) -> dict[str, JobStatus]:
    return {table: job for job in _unended(rest) for table in tables_of_job(job.name)}


def _check_not_running(rest: FlinkRest, tables: Sequence[FeatureTable]) -> None:
    # Two jobs of one table would issue versions as one writer, and share its feedback.
    running = _feature_jobs(rest)
    for table in tables:
        if table.name in running:
            job = running[table.name]
            raise JobError(
                f"table {table.name} has job {job.id} already, which is {job.state}; cancel it"
                " first, or give this table another name"
            )


def _flink(config: Config) -> FlinkRest:
    if config.flink_rest is None:
        raise StackError(
            "no Flink is configured; set flink_rest in the configuration, or FRESHET_FLINK_REST"
        )
    return FlinkRest(config.flink_rest)


def _unended(rest: FlinkRest) -> list[JobStatus]:
    return [job for job in rest.jobs() if job.state not in _ENDED]


def _check_slots(rest: FlinkRest, needed: int, stack: Stack | None) -> None:
    # Elsewhere slots may come with the job, as on Kubernetes; the embedded stack's are fixed.
    if stack is None:
        return
    free = rest.overview()["slots-available"]
    if free < needed:
        raise JobError(
            f"the job needs {needed} slot(s) and the cluster has {free} free; cancel another job,"
            " or start the stack with more (freshet up --task-managers N)"
        )


def _wait_until_running(rest: FlinkRest, job_id: str, deadline_s: float) -> None:
    deadline = time.monotonic() + deadline_s
    while not rest.is_running(job_id):
        if time.monotonic() > deadline:
            raise JobError(
                f"job {job_id} was submitted, but not all of its subtasks run after"
                f" {deadline_s:.0f} s: {rest.failure(job_id)}"
            )
        time.sleep(_POLL_INTERVAL_S)
