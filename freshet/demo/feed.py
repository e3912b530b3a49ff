"""Sends the demo's input to Kafka, one step of event time after the other."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from confluent_kafka import Producer

from freshet.config import Config
from freshet.demo.readings import Readings
from freshet.errors import FreshetError
from freshet.observer import ProductionLog
from freshet.replay import EventReplayer
from freshet.table import FeatureTable

_FLUSH_TIMEOUT_S = 30.0


class Malformed(NamedTuple):
    """A deliberately bad event."""

    what: str
    """What is wrong with it, for people."""

    key: str | None
    value: str


def malformed_events(key: str, time_ms: int) -> list[Malformed]:
    """A handful of events that no job may use, each bad in another way.

    Args:
        key: entity key that they claim to be of.
        time_ms: event time that they claim, epoch milliseconds.
    """
    good: dict[str, Any] = {"key": key, "ts": time_ms, "value": 1.0}
    text = json.dumps(good)

    def without(field: str) -> str:
        return json.dumps({name: value for name, value in good.items() if name != field})

    return [
        Malformed("cut off in the middle", key, text[: len(text) // 2]),
        Malformed("a value that is text", key, json.dumps(good | {"value": "a lot"})),
        Malformed("a value that is not a number", key, text.replace("1.0", "NaN")),
        Malformed("no value", key, without("value")),
        Malformed("no time", key, without("ts")),
        Malformed("no key", None, without("key")),
    ]


class Feed:
    """Produces readings, and the heartbeats that tell both tables how far event time is."""

    def __init__(
        self,
        config: Config,
        tables: Sequence[FeatureTable],
        readings: Readings,
        production: ProductionLog,
    ) -> None:
        """Connects to Kafka.

        Args:
            config: of the deployment.
            tables: that read one topic of events, and each its own of feedback; they exist.
            readings: what is sent.
            production: where the wall time of each event time is noted.

        Raises:
            ReplayError: Kafka does not answer, or a topic is missing.
        """
        definitions = [table.to_dict(config.topic_prefix) for table in tables]
        self._readings = readings
        self._production = production
        self._events_topic: str = definitions[0]["source"]["topic"]
        self._replayer = EventReplayer(
            config,
            definitions[0],
            readings.keys,
            feedback_topics=[definition["feedback_topic"] for definition in definitions],
        )
        self._malformed = Producer(
            config.kafka_client_properties(), logger=logging.getLogger("freshet.kafka")
        )

    def send(self, first: int, last: int) -> int:
        """Produces the rows ``first`` to ``last - 1`` of the readings; returns how many events."""
        count = 0
        for row in range(first, last):
            time_ms = self._readings.time_ms(row)
            self._production.produced(time_ms, time.time())
            count += self._replayer.produce_step(self._readings.values[row : row + 1], [time_ms])
        return count

    def send_malformed(self, events: Iterable[Malformed]) -> None:
        """Produces bad events.

        Raises:
            FreshetError: Kafka does not take them.
        """
        for event in events:
            self._malformed.produce(self._events_topic, key=event.key, value=event.value)
        if self._malformed.flush(_FLUSH_TIMEOUT_S):
            raise FreshetError("Kafka does not take the malformed events; see the broker's log")

    def end_step(self, end_ms: int) -> None:
        """Says in every partition that nothing up to this event time follows.

        Feedback of the step that others produce must be acknowledged before.

        Raises:
            ReplayError: Kafka has not taken all events.
        """
        self._replayer.heartbeat(end_ms)
