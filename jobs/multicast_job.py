"""Multicast job: changes -> buffers -> chunks -> along the planner's trees -> regions' inboxes.

Submitted by ``freshet multicast``, or by hand::

    flink run -d -py jobs/multicast_job.py --jarfile freshet-flink.jar \
        -pyexec .venv/bin/python -pyclientexec .venv/bin/python \
        --table my_table.py --config freshet.yaml

The graph is drawn in ``freshet/pipeline/multicast.py``.
"""

from __future__ import annotations

import argparse

from freshet.config import Config
from freshet.pipeline.environment import job_environment
from freshet.pipeline.multicast import build_multicast_job, job_settings
from freshet.submission import multicast_job_name
from freshet.table import load_table
from freshet.topics import describe_log


def main() -> None:
    """Reads the table definitions and the home region's config, and submits the job."""
    parser = argparse.ArgumentParser(description="Send tables to the regions that serve them.")
    parser.add_argument(
        "--table", required=True, action="append", help="table definition, .py or .yaml"
    )
    parser.add_argument("--config", required=True, help="home region's config, .yaml")
    parser.add_argument("--subtasks", type=int, default=1, help="parallelism")
    arguments = parser.parse_args()

    tables = [load_table(file) for file in arguments.table]
    config = Config.load(arguments.config)
    logs = {
        table.name: describe_log(config, table.to_dict(config.topic_prefix)["changes_topic"])
        for table in tables
    }
    env = job_environment(job_settings(arguments.subtasks))
    build_multicast_job(env, tables, config, logs)
    env.execute(multicast_job_name(*(table.name for table in tables)))


if __name__ == "__main__":
    main()
