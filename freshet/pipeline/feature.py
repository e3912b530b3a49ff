"""The feature job of a table.

::

    events.<table>   -> parse --+
                                +-> keyBy -> schedule -> feature function -> decode -> write
    feedback.<table> -> parse --+   [---------------------- one chain ----------------------]
                                                                                 |
                       changes.<table>  <- acknowledged writes ------------------+
                       progress         <- what is in the store -----------------+
                       dead-letters.<table> <- whatever could not be used, from every operator

The chain is the scheduler's credit: it chooses the next key when the last one is computed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pyflink.common import Configuration, Types
from pyflink.datastream import StreamExecutionEnvironment

from freshet.config import Config
from freshet.functions.serialization import dump_function
from freshet.pipeline.function_operator import FeatureFunctionOperator
from freshet.pipeline.java import java_class, java_environment, java_stream, python_stream
from freshet.table import FeatureTable

EVENT_TIME_WATERMARK_INTERVAL_MS = 20
"""With a budget by event time, the watermark is what makes choices; 200 ms is Flink's default."""

BUFFER_TIMEOUT_MS = 10
"""How long a record, or the watermark behind it, may wait for others on its way to the scheduler.
Flink's default of 100 ms would be most of a feature's freshness."""


def job_settings(tables: Sequence[FeatureTable]) -> Configuration:
    """Flink settings that the feature job needs, whatever the cluster's own are.

    Args:
        tables: of the job, at least one; their parallelism is the same.
    """
    settings = Configuration()
    # Measured (benchmarks/execution_mode.py): a call costs tens of microseconds in thread mode and
    # about 4 ms in process mode. One record is one batch of keys, so bundles of records gain
    # nothing and would hide a computation's end from the scheduler.
    settings.set_string("python.execution-mode", "thread")
    settings.set_string("python.fn-execution.bundle.size", "1")
    # The scheduler learns a computation's end from its own chain; unchained it would wait for ever.
    settings.set_string("pipeline.operator-chaining.enabled", "true")
    # Records are immutable, so a chain need not copy them.
    settings.set_string("pipeline.object-reuse", "true")
    settings.set_string("execution.buffer-timeout.interval", f"{BUFFER_TIMEOUT_MS} ms")
    settings.set_string("pipeline.max-parallelism", str(tables[0].max_parallelism))
    settings.set_string("parallelism.default", str(tables[0].parallelism))
    if any(table.to_dict()["budget"]["kind"] == "event-time-step" for table in tables):
        settings.set_string(
            "pipeline.auto-watermark-interval", f"{EVENT_TIME_WATERMARK_INTERVAL_MS} ms"
        )
    return settings


def build_feature_job(
    env: StreamExecutionEnvironment, table: FeatureTable, config: Config, uid_prefix: str = ""
) -> None:
    """Composes the feature job of a table in this environment.

    Args:
        env: may hold other tables already.
        table: to maintain.
        config: of the deployment.
        uid_prefix: tells the table's operators from another's in the same job.

    Raises:
        RuntimeError: the Freshet jar is not on the class path.
    """
    definition = table.to_dict(topic_prefix=config.topic_prefix)
    table_json = json.dumps(definition)
    deployment_json = json.dumps(config.deployment_dict(table, uid_prefix))
    ingest = java_class("connectors.kafka.IngestStreams")
    features = java_class("operators.pipeline.FeatureStreams")
    store = java_class("connectors.store.StoreStreams")
    sinks = java_class("connectors.kafka.SinkStreams")

    java_env = java_environment(env)
    events = ingest.events(java_env, table_json, deployment_json)
    feedback = ingest.feedback(java_env, table_json, deployment_json)
    scheduled = features.maintain(events.records(), feedback.records(), table_json, deployment_json)
    responses = _compute(scheduled.requests(), table, definition, uid_prefix)
    results = features.decode(responses, table_json, deployment_json)
    written = store.write(results.changes(), table_json, deployment_json)

    sinks.changes(written.changes(), table_json, deployment_json)
    sinks.progress(written.progress(), table_json, deployment_json)
    dead_letters = _union(
        events.deadLetters(),
        feedback.deadLetters(),
        scheduled.deadLetters(),
        results.deadLetters(),
        written.deadLetters(),
    )
    sinks.deadLetters(dead_letters, table_json, deployment_json)


def _compute(
    requests: Any, table: FeatureTable, definition: dict[str, Any], uid_prefix: str
) -> Any:
    operator = FeatureFunctionOperator(
        dump_function(table.function.for_table(table)),
        timeout_s=definition["function_timeout_ms"] / 1000,
        python=None,
    )
    computed = (
        python_stream(requests)
        .map(operator, output_type=Types.PRIMITIVE_ARRAY(Types.BYTE()))
        .uid(f"{uid_prefix}feature-function")
        .name(f"Compute {type(table.function).__name__} of {table.name}")
    )
    return java_stream(computed)


def _union(first: Any, *others: Any) -> Any:
    """Union of Java streams of one type, through Python's, which knows varargs."""
    united = python_stream(first).union(*(python_stream(other) for other in others))
    return java_stream(united)
