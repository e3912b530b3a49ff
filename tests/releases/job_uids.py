"""Prints the uids of every operator of every kind of job, as JSON: by them savepoints find them.

::

    python -m tests.releases.job_uids > tests/data/uids.json

Builds the jobs' graphs as their scripts do, and runs nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from pyflink.datastream import StreamExecutionEnvironment

from freshet import FeatureFunction, FeatureTable, Points
from freshet.config import Config
from freshet.pipeline import feature, multicast
from freshet.pipeline.feature import build_feature_job
from freshet.pipeline.multicast import build_multicast_job
from freshet.pipeline.region import build_region_job
from freshet.stack.layout import flink_jar
from freshet.topics import Log

HOME, AWAY = "aws:eu-west-1", "aws:us-east-1"


class Newest(FeatureFunction):
    """The newest value."""

    def compute(self, window: Any) -> list[float]:
        return [float(window.values[-1])]


def _table(name: str) -> FeatureTable:
    return FeatureTable(name=name, window=Points(3), function=Newest(), regions=(HOME, AWAY))


def _config(region: str) -> Config:
    brokers = {HOME: "127.0.0.1:1", AWAY: "127.0.0.1:2"}
    return Config.from_dict(
        {
            "kafka_bootstrap": brokers[region],
            "redis": {region: "redis://127.0.0.1:3/0"},
            "home_region": HOME,
            "region": region,
            "regions": {name: {"kafka_bootstrap": address} for name, address in brokers.items()},
        }
    )


def _nodes(settings: Any, build: Callable[[StreamExecutionEnvironment], None]) -> dict[str, str]:
    """What each operator is called, by its uid.

    Raises:
        SystemExit: an operator has none, or two have the same.
    """
    env = StreamExecutionEnvironment.get_execution_environment(settings)
    env.add_jars(flink_jar().as_uri())
    build(env)
    found: dict[str, str] = {}
    for node in env._generate_stream_graph().getStreamNodes().toArray():
        name, uid = str(node.getOperatorName()), node.getTransformationUID()
        if uid is None or uid in found:
            raise SystemExit(f"operator {name!r} has the uid {uid}, which must be one of its own")
        found[str(uid)] = name
    return found


def uids() -> dict[str, list[str]]:
    """Uids of all operators, by kind of job."""
    home, away = _config(HOME), _config(AWAY)
    first, second = _table("first"), _table("second")

    def features(env: StreamExecutionEnvironment) -> None:
        for table in (first, second):
            build_feature_job(env, table, home, f"{table.name}/")

    def sending(env: StreamExecutionEnvironment) -> None:
        logs = {table.name: Log("id", 4) for table in (first, second)}
        build_multicast_job(env, [first, second], home, logs)

    jobs = {
        "feature": _nodes(
            feature.job_settings([first]), lambda env: build_feature_job(env, first, home)
        ),
        "features": _nodes(feature.job_settings([first, second]), features),
        "multicast": _nodes(multicast.job_settings(1), sending),
        "region": _nodes(
            multicast.job_settings(1), lambda env: build_region_job(env, [first, second], away)
        ),
    }
    return {kind: sorted(nodes) for kind, nodes in jobs.items()}


if __name__ == "__main__":
    print(json.dumps(uids(), indent=2))
