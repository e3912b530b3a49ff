"""Ends with 0 if the configuration is right and the job of each Flink runs: what `helm test` does.

::

    python docker/running.py http://freshet-cpu-stl-rest:8081 http://freshet-job-multicast-rest:8081
"""

from __future__ import annotations

import sys

from freshet.config import Config
from freshet.errors import FreshetError, JobError
from freshet.stack.flink_rest import FlinkRest


def check(url: str) -> str:
    """The name of the job of a Flink cluster that has one.

    Raises:
        JobError: there is none, or it does not run with all of its subtasks.
        StackError: Flink does not answer.
    """
    flink = FlinkRest(url)
    jobs = flink.jobs()
    if not jobs:
        raise JobError(f"Flink at {url} has no job; see the log of its JobManager")
    if not flink.is_running(jobs[0].id):
        raise JobError(f"job {jobs[0].name} at {url} is {jobs[0].state}, not all of it runs")
    return jobs[0].name


def main() -> None:
    """Checks all, and says what is wrong with each."""
    problems = []
    try:
        Config.load()
    except FreshetError as error:
        problems.append(str(error))
    for url in sys.argv[1:]:
        try:
            print(f"Job {check(url)} runs.")
        except FreshetError as error:
            problems.append(str(error))
    if problems:
        sys.exit("\n".join(problems))


if __name__ == "__main__":
    main()
