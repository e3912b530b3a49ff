"""Feature job: events and feedback -> scheduler -> feature function -> online store -> changes.

Submitted by ``freshet submit``, or by hand::

    flink run -d -py jobs/feature_job.py --jarfile freshet-flink.jar \
        -pyexec .venv/bin/python -pyclientexec .venv/bin/python \
        --table my_table.py --config freshet.yaml

The graph is drawn in ``freshet/pipeline/feature.py``.
"""

from __future__ import annotations

import argparse
import dataclasses

from pyflink.datastream import StreamExecutionEnvironment

from freshet.config import Config
from freshet.pipeline.feature import build_feature_job, job_settings
from freshet.submission import feature_job_name
from freshet.table import load_table


def main() -> None:
    """Reads the table definition and the deployment's config, and submits the job."""
    parser = argparse.ArgumentParser(description="Maintain the features of one table.")
    parser.add_argument("--table", required=True, help="table definition, .py or .yaml")
    parser.add_argument("--config", required=True, help="deployment config, .yaml")
    parser.add_argument("--subtasks", type=int, help="parallelism in place of the table's")
    arguments = parser.parse_args()

    table = load_table(arguments.table)
    if arguments.subtasks:
        table = dataclasses.replace(table, parallelism=arguments.subtasks)
    config = Config.load(arguments.config)
    env = StreamExecutionEnvironment.get_execution_environment(job_settings(table))
    build_feature_job(env, table, config)
    env.execute(feature_job_name(table.name))


if __name__ == "__main__":
    main()
