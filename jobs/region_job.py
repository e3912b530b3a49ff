"""Region job: this region's inbox -> its online store, and on to the next regions.

Submitted by ``freshet region``, or by hand::

    flink run -d -py jobs/region_job.py --jarfile freshet-flink.jar \
        -pyclientexec .venv/bin/python \
        --table my_table.py --config gcp-us-east1.yaml

The graph is drawn in ``freshet/pipeline/region.py``.
"""

from __future__ import annotations

import argparse

from freshet.config import Config
from freshet.pipeline.environment import job_environment
from freshet.pipeline.multicast import job_settings
from freshet.pipeline.region import build_region_job
from freshet.submission import region_job_name
from freshet.table import load_table


def main() -> None:
    """Reads the table definitions and the region's config, and submits the job."""
    parser = argparse.ArgumentParser(description="Keep tables in a region, and pass them on.")
    parser.add_argument(
        "--table", required=True, action="append", help="table definition, .py or .yaml"
    )
    parser.add_argument("--config", required=True, help="the region's config, .yaml")
    parser.add_argument("--subtasks", type=int, default=1, help="parallelism")
    parser.add_argument(
        "--clock-ahead-ms",
        type=int,
        default=0,
        help="for tests: what the region's clock is taken to be ahead of the machine's",
    )
    arguments = parser.parse_args()

    tables = [load_table(file) for file in arguments.table]
    config = Config.load(arguments.config)
    env = job_environment(job_settings(arguments.subtasks))
    build_region_job(env, tables, config, arguments.clock_ahead_ms)
    env.execute(region_job_name(config.region))


if __name__ == "__main__":
    main()
