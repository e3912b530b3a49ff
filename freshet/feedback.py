"""Sends models' feedback to Kafka without blocking the caller, and without losing any silently.

Readers' demands go the same way.
"""

from __future__ import annotations

import functools
import json
import logging
import math
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from json.encoder import encode_basestring_ascii as _quoted

from confluent_kafka import KafkaError, Message, Producer

from freshet.errors import FreshetError
from freshet.kafka_access import Access
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
        self._access = Access(properties.get("bootstrap.servers", ""))
        self._producer = self._access.client(
            functools.partial(Producer, logger=logging.getLogger("freshet.kafka")),
            {**_DEFAULTS, **properties},
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
        body = _body(key, version, error, ts, errors, self._tail(model))
        self._send(topic, key.encode(), body)
        self._producer.poll(0)

    def send_many(
        self,
        topic: str,
        keys: Iterable[str],
        versions: Iterable[Version | str | None],
        errors: Iterable[float | None],
        ts: Iterable[int | None],
        kept: Iterable[Sequence[float | None] | None],
        model: str | None = None,
    ) -> int:
        """Queues many feedbacks, each as :meth:`send` does.

        One without a version and without an error says nothing, and is left out.

        Args:
            topic: name of the topic, prefix included.
            keys: entity keys [n].
            versions: newest versions [n].
            errors: prediction errors [n]; None or NaN for a query without a label yet.
            ts: event times [n], epoch milliseconds.
            kept: errors of all kept versions, newest first, of each key [n].
            model: name of the model.

        Returns:
            How many were queued.

        Raises:
            ValueError: as :meth:`send`, or lengths differ; those before it are queued.
            FeedbackQueueFullError: the queue stays full; those before it are queued.
        """
        tail, queued = self._tail(model), 0
        try:
            for row in zip(keys, versions, errors, ts, kept, strict=True):
                key, version, error, time_ms, of_kept = row
                if error is None or math.isnan(error):
                    if version is None:
                        continue
                    error = of_kept = None
                elif version is None:
                    of_kept = None
                self._send(topic, key.encode(), _body(key, version, error, time_ms, of_kept, tail))
                queued += 1
        finally:
            self._producer.poll(0)
        return queued

    def demand(self, topic: str, key: str, ts: int) -> None:
        """Queues a demand: someone waits to read the key. It is forgotten if Kafka is away.

        Args:
            topic: name of the feedback topic, prefix included.
            key: entity key.
            ts: event time of the reading, epoch milliseconds.

        Raises:
            FeedbackQueueFullError: the queue stays full.
        """
        body = json.dumps({"key": key, "demand": True, "ts": ts})
        self._produce(topic, key.encode(), body, _on_demand_delivery)
        self._producer.poll(0)

    def _send(self, topic: str, key: bytes, body: str) -> None:
        # Counted first: it may be delivered before the next line runs.
        self._count_queued(1)
        try:
            self._produce(topic, key, body, self._on_delivery)
        except BaseException:  # an interrupt too
            self._count_queued(-1)
            raise

    def _produce(
        self,
        topic: str,
        key: bytes,
        body: str,
        on_delivery: Callable[[KafkaError | None, Message], None],
    ) -> None:
        deadline: float | None = None
        while True:
            try:
                self._producer.produce(topic, body, key, on_delivery=on_delivery)
                return
            except BufferError:
                now = time.monotonic()
                deadline = deadline or now + QUEUE_FULL_WAIT_S
                if now >= deadline:
                    raise FeedbackQueueFullError(topic, len(self._producer)) from None
                self._producer.poll(_POLL_S)

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
        refusal = self._access.refusal
        if lost:
            why = self._last_loss if refusal is None else refusal
            raise FeedbackLostError(f"Kafka did not take {lost} feedbacks: {why}")
        if remaining:
            why = "check that Kafka runs, or allow more time" if refusal is None else refusal
            raise FeedbackLostError(
                f"{remaining} feedbacks were not acknowledged within {timeout_s:g} s; {why}"
            )

    def _tail(self, model: str | None) -> str:
        """The end of a feedback's JSON, which is the same for many."""
        region = "" if self._region is None else f', "region": {_quoted(self._region)}'
        return f"{region}}}" if model is None else f'{region}, "model": {_quoted(model)}}}'

    def _on_delivery(self, error: KafkaError | None, message: Message) -> None:
        with self._lock:
            if error is None:
                self.delivered += 1
                self._access.refusal = None
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


def _body(
    key: str,
    version: Version | str | None,
    error: float | None,
    ts: int | None,
    kept: Sequence[float | None] | None,
    tail: str,
) -> str:
    """A feedback as JSON; by hand, in half of json.dumps's time."""
    head = f'{{"key": {_quoted(key)}, "version": {_version_json(version)}'
    time_ms = "" if ts is None else f', "ts": {int(ts)}'
    return f"{head}{_errors_json(version, error, kept)}{time_ms}{tail}"


def _version_json(version: Version | str | None) -> str:
    if version is None:
        return "null"
    return f'"{version if isinstance(version, Version) else Version.parse(version)}"'


def _errors_json(
    version: Version | str | None,
    error: float | None,
    kept: Sequence[float | None] | None,
) -> str:
    if error is None:
        if version is None:
            raise ValueError(
                "feedback without a version needs an error: it tells what a missing feature costs"
            )
        if kept is not None:
            raise ValueError("errors of kept versions need an error, that of what was served")
        return ""
    served = f', "error": {_checked(error)!r}'
    if kept is None:
        return served
    known = [None if e is None or math.isnan(e) else _checked(e) for e in kept]
    while known and known[-1] is None:
        known.pop()
    if version is None and known:
        raise ValueError("errors of kept versions need the newest version that was there")
    if not known:
        return served
    listed = ", ".join("null" if e is None else repr(e) for e in known)
    return f'{served}, "errors": [{listed}]'


def _checked(error: float) -> float:
    value = float(error)
    if not (math.isfinite(value) and value >= 0):
        raise ValueError(f"error must be a finite number of 0 or more, not {error!r}")
    return value
