"""Events at a steady rate, and a model that reads features and feeds errors back."""

from __future__ import annotations

import contextlib
import json
import logging
import random
import threading
import time
from collections.abc import Iterator

from confluent_kafka import Producer

import freshet
from freshet.config import Config

_SLICE_S = 0.02
_MODEL_PAUSE_S = 0.5
_MODEL_KEYS = 50
_LOG = logging.getLogger("tests.soak")


class Load:
    """Sends events while its block runs."""

    def __init__(self, config: Config, table: str, topic: str, keys: int) -> None:
        """Describes it.

        Args:
            config: of the home region.
            table: that the model reads.
            topic: for the events.
            keys: take turns.
        """
        self._config = config
        self._table = table
        self._topic = topic
        self._keys = [f"key-{number}" for number in range(keys)]
        self._producer = Producer(
            {
                "bootstrap.servers": config.kafka_bootstrap,
                "linger.ms": 5,
                "enable.idempotence": True,
                "queue.buffering.max.messages": 20_000,
            },
            logger=_LOG,
        )
        self.events = 0
        """Sent so far."""

        self.feedback = 0

    @contextlib.contextmanager
    def running(self, events_per_s: float) -> Iterator[None]:
        """Sends so many events a second, one key after the other, and a model's feedback."""
        stop = threading.Event()
        failures: list[BaseException] = []
        threads = [
            threading.Thread(target=self._guard, args=(target, failures), daemon=True, name=name)
            for name, target in (
                ("soak-events", lambda: self._send(events_per_s, stop)),
                ("soak-model", lambda: self._model(stop)),
            )
        ]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            stop.set()
            for thread in threads:
                thread.join()
            assert self._producer.flush(60) == 0, "Kafka did not take every event"
        if failures:
            raise failures[0]

    def _guard(self, target: object, failures: list[BaseException]) -> None:
        assert callable(target)
        try:
            target()
        except BaseException as failure:
            failures.append(failure)

    def _send(self, events_per_s: float, stop: threading.Event) -> None:
        begun, sent = time.monotonic(), 0
        while not stop.wait(_SLICE_S):
            due = int((time.monotonic() - begun) * events_per_s)
            for _ in range(due - sent):
                self._event()
            sent = due
            self._producer.poll(0)

    def _event(self) -> None:
        key = self._keys[self.events % len(self._keys)]
        event = {"key": key, "ts": time.time_ns() // 1_000_000, "value": self.events % 1_000}
        while True:
            try:
                self._producer.produce(self._topic, json.dumps(event), key)
                break
            except BufferError:
                self._producer.poll(0.05)
        self.events += 1

    def _model(self, stop: threading.Event) -> None:
        rng = random.Random(7)
        with freshet.Client(self._config) as client:
            while not stop.wait(_MODEL_PAUSE_S):
                keys = rng.sample(self._keys, min(_MODEL_KEYS, len(self._keys)))
                batch = client.get_many(self._table, keys)
                for key, feature in zip(keys, batch, strict=True):
                    if feature.status == "PRESENT":
                        client.feedback(self._table, key, feature.version, rng.expovariate(1.0))
                        self.feedback += 1
