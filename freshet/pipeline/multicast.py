"""The multicast job: tables' change events, to other regions.

::

    changes.<table>  -> number shards -> keyBy(shard) --+
                                                        +-> send to regions -> inbox.<next hop>
    progress -+-------------------------- broadcast ----+          |
              +-> plan trees (Python) --- broadcast ----+          |
                                                                   |
    progress                   <- what was read and sent ----------+
    dead-letters.inbox.<home>  <- changes that cannot be read -----+

The planner's process solves, so the planner's task only hands reports over: checkpoints pass it.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any

from pyflink.common import Configuration, Types
from pyflink.datastream import DataStream, StreamExecutionEnvironment

from freshet.config import Config
from freshet.multicast.building import multicast_settings, planner_settings
from freshet.pipeline.java import java_class, java_environment, java_stream, python_stream
from freshet.pipeline.planner_operator import PlannerOperator
from freshet.table import FeatureTable
from freshet.topics import Log

JOB = "multicast"

BUFFER_TIMEOUT_MS = 2
"""How long a record may wait for others between two tasks: part of every value's freshness."""


def job_settings(parallelism: int) -> Configuration:
    """Flink settings that the multicast job and the region jobs need, whatever the cluster's are.

    Args:
        parallelism: of the job.
    """
    settings = Configuration()
    settings.set_string("python.execution-mode", "thread")
    settings.set_string("python.fn-execution.bundle.size", "1")
    settings.set_string("pipeline.operator-chaining.enabled", "true")
    # Records are immutable, so a chain need not copy them.
    settings.set_string("pipeline.object-reuse", "true")
    settings.set_string("execution.buffer-timeout.interval", f"{BUFFER_TIMEOUT_MS} ms")
    settings.set_string("parallelism.default", str(parallelism))
    return settings


def build_multicast_job(
    env: StreamExecutionEnvironment,
    tables: Sequence[FeatureTable],
    config: Config,
    logs: Mapping[str, Log],
) -> None:
    """Composes the multicast job of some tables in this environment.

    Args:
        env: empty until now.
        tables: to send.
        config: of the home region.
        logs: each table's changes topic, by the table's name.

    Raises:
        ConfigError: a table cannot be sent, or the profiles are wrong; with every problem.
        RuntimeError: the Freshet jar is not on the class path.
    """
    settings = json.dumps(multicast_settings(tables, config, logs))
    planner = planner_settings(tables, config, logs)
    # Regions get what they lack by catching up, so a job without state need not read it all again.
    latest = dataclasses.replace(config, start_offsets="latest")
    regions = json.dumps(latest.dissemination_dict(JOB))
    sources = java_class("connectors.kafka.LogStreams")
    multicast = java_class("operators.dissemination.MulticastStreams")

    java_env = java_environment(env)
    changes = [_changes(env, sources, multicast, table, latest, settings) for table in tables]
    numbered = changes[0].union(*changes[1:]) if len(changes) > 1 else changes[0]
    progress = sources.progress(java_env, regions)
    plans = (
        python_stream(multicast.bytes(progress))
        .flat_map(
            PlannerOperator(planner.to_json()), output_type=Types.PRIMITIVE_ARRAY(Types.BYTE())
        )
        .set_parallelism(1)
        .uid("planner")
        .name("Plan trees")
    )
    control = python_stream(progress).union(python_stream(multicast.control(java_stream(plans))))
    sent = multicast.multicast(java_stream(numbered), java_stream(control), settings, regions)
    multicast.reports(sent.reports(), regions)
    multicast.deadLetters(sent.deadLetters(), regions)


def _changes(
    env: StreamExecutionEnvironment,
    sources: Any,
    multicast: Any,
    table: FeatureTable,
    config: Config,
    settings: str,
) -> DataStream:
    """One table's changes; their source's uid has its name, so that tables may come and go."""
    changes = sources.changes(
        java_environment(env),
        json.dumps(table.to_dict(topic_prefix=config.topic_prefix)),
        json.dumps(config.dissemination_dict(JOB, uid_prefix=f"{table.name}/")),
        env.get_parallelism(),
    )
    return python_stream(multicast.numbered(changes, settings, table.name))
