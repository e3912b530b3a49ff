"""The region job: what other regions send, to this one's online store and on to others.

::

    inbox.<region> -> region -+-> write if newer -> Redis (a destination)
                              +-> inbox.<next hop>
                              +-> progress (home's broker): what is in the store, and the links
                              +-> dead-letters.inbox.<region>: chunks that are damaged

Everything of it is Java, so it starts no Python worker.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from pyflink.datastream import StreamExecutionEnvironment

from freshet.config import Config
from freshet.multicast.building import region_settings
from freshet.pipeline.java import java_class, java_environment
from freshet.table import FeatureTable

JOB = "region"


def build_region_job(
    env: StreamExecutionEnvironment,
    tables: Sequence[FeatureTable],
    config: Config,
    clock_ahead_ms: int = 0,
) -> None:
    """Composes the job of the configuration's region in this environment.

    Args:
        env: empty until now.
        tables: that the region keeps, or passes on.
        config: of the region.
        clock_ahead_ms: for tests: what its clock is taken to be ahead of its machine's.

    Raises:
        ConfigError: a table is not for this region; with every problem.
        RuntimeError: the Freshet jar is not on the class path.
    """
    settings = json.dumps(region_settings(tables, config, clock_ahead_ms))
    regions = json.dumps(config.dissemination_dict(JOB))
    sources = java_class("connectors.kafka.LogStreams")
    region = java_class("operators.dissemination.RegionStreams")

    parallelism = env.get_parallelism()
    inbox = sources.inbox(java_environment(env), regions, parallelism)
    region.write(region.receive(inbox, settings, regions, parallelism), regions)
