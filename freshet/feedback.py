"""Sends models' feedback to Kafka without blocking the caller, and without losing any silently.

Readers' demands go the same way.
"""

from __future__ import annotations

import json
import logging
import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence

from confluent_kafka import KafkaError, Message, Producer

from freshet.errors import FreshetError
from freshet.version import Version

QUEUE_FULL_WAIT_S = 0.1
"""How long a caller waits for room in a full queue before it is told."""

_POLL_S = 0.005

# A minute of Kafka away is waited out; the table keeps its regret, so later feedback is as good.
_DEFAULTS = {
    "linger.ms": "5",
    "enable.idempotence": "true",
    "compression.type": "lz4",
    "delivery.timeout.ms": "60000",
    # Java's choice of partition, so that all producers of a key share its partition.
    "partitioner": "murmur2_random",
}

_log = logging.getLogger(__name__)


class FeedbackQueueFullError(FreshetError):
    """Kafka takes feedback more slowly than it comes; nothing was queued by this call."""

    def __init__(self, topic: str, queued: int) -> None:
        self.retry_after_s = 1.0
        """When to try again, seconds."""
        super().__init__(
            f"the queue of {queued} messages for Kafka is full, feedback for {topic} was not "
            "taken; try again in a second, send less, or check that Kafka runs"
        )


class FeedbackLostError(FreshetError):
    """Feedback that was taken did not reach Kafka."""


class FeedbackProducer:
    """Produces feedback; one for any number of tables and threads.

    Args:
        properties: of a librdkafka client; they win over the defaults here.
        region: what feedback says about where the model ran; None leaves it out.
    """

    def __init__(self, properties: Mapping[str, str], region: str | None = None) -> None:
        self._producer = Producer(
            {**_DEFAULTS, **properties}, logger=logging.getLogger("freshet.kafka")
        )
        self._region = region
        self.delivered = 0
        """Messages that Kafka has acknowledged."""
        self.lost = 0
        """Messages that Kafka has not acknowledged in time or has refused."""
        self._queued = 0
        self._reported_lost = 0
        self._last_loss = ""
        self._lock = threading.Lock()

    def send(
        self,
        topic: str,
        key: str,
        version: Version | str | None,
        error: float | None = None,
        ts: int | None = None,
        model: str | None = None,
        errors: Sequence[float | None] | None = None,
    ) -> None:
        """Queues one feedback.

        Args:
            topic: name of the topic, prefix included.
            key: entity key.
            version: newest version of the feature when it was used; None if there was none.
            error: prediction error, at least 0; None for a query without a label yet.
            ts: event time, epoch milliseconds.
            model: name of the model.
            errors: of all kept versions, newest first; None and NaN where it is not known.

        Raises:
            ValueError: the version or an error is not valid, or they don't go together.
            FeedbackQueueFullError: the queue stays full.
        """
        message: dict[str, object] = {"key": key, "version": _version_text(version)}
        message |= _errors_to_json(version, error, errors)
        message |= self._optional(ts, model)
        self._count_queued(1)
        try:
            self._produce(topic, key, message, self._on_delivery)
        except Exception:
            self._count_queued(-1)
            raise

    def demand(self, topic: str, key: str, ts: int) -> None:
        """Queues a demand: someone waits to read the key. It is forgotten if Kafka is away.

        Args:
            topic: name of the feedback topic, prefix included.
            key: entity key.
            ts: event time of the reading, epoch milliseconds.

        Raises:
            FeedbackQueueFullError: the queue stays full.
        """
        self._produce(topic, key, {"key": key, "demand": True, "ts": ts}, _on_demand_delivery)

    def _produce(
        self,
        topic: str,
        key: str,
        message: Mapping[str, object],
        on_delivery: Callable[[KafkaError | None, Message], None],
    ) -> None:
        body = json.dumps(message).encode()
        encoded_key = key.encode()
        deadline: float | None = None
        while True:
            try:
                self._producer.produce(topic, body, encoded_key, on_delivery=on_delivery)
                break
            except BufferError:
                now = time.monotonic()
                deadline = deadline or now + QUEUE_FULL_WAIT_S
                if now >= deadline:
                    raise FeedbackQueueFullError(topic, len(self._producer)) from None
                self._producer.poll(_POLL_S)
        self._producer.poll(0)

    def flush(self, timeout_s: float) -> None:
        """Waits until Kafka has acknowledged all feedback that was queued.

        Raises:
            FeedbackLostError: not all was acknowledged in time, or some was lost since the last
                flush.
        """
        self._producer.poll(0)
        if self._unacknowledged():
            self._producer.flush(timeout_s)
        remaining = self._unacknowledged()
        lost, self._reported_lost = self.lost - self._reported_lost, self.lost
        if lost:
            raise FeedbackLostError(f"Kafka did not take {lost} feedbacks: {self._last_loss}")
        if remaining:
            raise FeedbackLostError(
                f"{remaining} feedbacks were not acknowledged within {timeout_s:g} s; check that "
                "Kafka runs, or allow more time"
            )

    def _optional(self, ts: int | None, model: str | None) -> dict[str, object]:
        fields: dict[str, object] = {}
        if ts is not None:
            fields["ts"] = int(ts)
        if self._region is not None:
            fields["region"] = self._region
        if model is not None:
            fields["model"] = model
        return fields

    def _on_delivery(self, error: KafkaError | None, message: Message) -> None:
        with self._lock:
            if error is None:
                self.delivered += 1
                return
            self.lost += 1
            self._last_loss = f"{message.topic()}: {error.str()}"
            is_first = self.lost - self._reported_lost == 1
        if is_first:
            _log.error("feedback was lost: %s", self._last_loss)

    def _count_queued(self, more: int) -> None:
        with self._lock:
            self._queued += more

    def _unacknowledged(self) -> int:
        with self._lock:
            return self._queued - self.delivered - self.lost


def _on_demand_delivery(error: KafkaError | None, message: Message) -> None:
    if error is not None:
        _log.debug("a demand was lost: %s: %s", message.topic(), error.str())


def _version_text(version: Version | str | None) -> str | None:
    if version is None:
        return None
    return str(version if isinstance(version, Version) else Version.parse(version))


def _errors_to_json(
    version: Version | str | None,
    error: float | None,
    errors: Sequence[float | None] | None,
) -> dict[str, object]:
    if error is None:
        if version is None:
            raise ValueError(
                "feedback without a version needs an error: it tells what a missing feature costs"
            )
        if errors is not None:
            raise ValueError("errors of kept versions need an error, that of what was served")
        return {}
    fields: dict[str, object] = {"error": _checked(error)}
    if errors is not None:
        known = [None if e is None or math.isnan(e) else _checked(e) for e in errors]
        while known and known[-1] is None:
            known.pop()
        if version is None and known:
            raise ValueError("errors of kept versions need the newest version that was there")
        if known:
            fields["errors"] = known
    return fields


def _checked(error: float) -> float:
    value = float(error)
    if not (math.isfinite(value) and value >= 0):
        raise ValueError(f"error must be a finite number of 0 or more, not {error!r}")
    return value
