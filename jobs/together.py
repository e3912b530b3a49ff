"""Several jobs from one client, which starts faster than as many clients.

Submitted by ``freshet demo``, or by hand::

    flink run -d -py jobs/together.py --jarfile freshet-flink.jar \
        -pyexec .venv/bin/python -pyclientexec .venv/bin/python \
        --script jobs/multicast_job.py --table my_table.py --config home.yaml \
        --script jobs/region_job.py --table my_table.py --config gcp-us-east1.yaml

What follows a ``--script`` up to the next one are that script's own arguments. The jobs have
nothing in common but the client.
"""

from __future__ import annotations

import runpy
import sys
from collections.abc import Sequence


def main() -> None:
    """Runs each script as if it were alone."""
    for script, *arguments in jobs_of(sys.argv[1:]):
        sys.argv = [script, *arguments]
        runpy.run_path(script, run_name="__main__")


def jobs_of(arguments: Sequence[str]) -> list[list[str]]:
    """Each job's script and its arguments.

    Raises:
        ValueError: there is no job, or one has no script.
    """
    jobs: list[list[str]] = []
    for argument in arguments:
        if argument == "--script":
            jobs.append([])
        elif jobs:
            jobs[-1].append(argument)
        else:
            raise ValueError(f"{argument} is of no job; give --script and a job's script first")
    if not jobs or not all(jobs):
        raise ValueError("each --script needs one: --script jobs/region_job.py --table ...")
    return jobs


if __name__ == "__main__":
    main()
