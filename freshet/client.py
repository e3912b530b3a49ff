"""The client of models and applications: read features, tell how well they predicted.

::

    with freshet.Client(freshet.Config.load()) as client:
        feature = client.get("cpu_stl", "vm-17")
        if feature.status == "PRESENT":
            ...
            client.feedback("cpu_stl", "vm-17", feature.version, error=abs(actual - predicted))
"""

from __future__ import annotations

import difflib
import itertools
import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from freshet.client_metrics import ReadCounters
from freshet.config import Config
from freshet.demanding import Demander, OnDemandRule
from freshet.feedback import FeedbackLostError, FeedbackProducer, FeedbackQueueFullError
from freshet.store.connection import StoreUnavailableError, connect, fetch
from freshet.store.decoding import Feature, FeatureBatch, FeatureStatus
from freshet.store.kept import KeptVersions
from freshet.store.layout import key_name
from freshet.store.registry import registered_names, registered_table
from freshet.table import FeatureTable
from freshet.version import Version

__all__ = [
    "Client",
    "Feature",
    "FeatureBatch",
    "FeatureStatus",
    "FeedbackLostError",
    "FeedbackQueueFullError",
    "KeptVersions",
    "StoreUnavailableError",
]

FLUSH_TIMEOUT_S = 10.0
REGISTRY_REFRESH_S = 30.0
"""How long what the store says about a table is trusted before it is read again, seconds."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _TableFacts:
    """What the client needs to know of a table."""

    ttl_ms: int | None
    feedback_topic: str
    on_demand: OnDemandRule | None
    read_again_at: float
    """On the monotonic clock, seconds."""


class Client:
    """Reads features from one region's online store, and sends feedback. Thread-safe.

    A table's time to live, its topics, and whether it computes on demand come from the definitions
    given here, else from the store, where ``freshet submit`` leaves them.

    Args:
        config: of the deployment.
        region: whose online store to read; None for the configuration's.
        tables: definitions to use instead of the store's.
        clock: now, in epoch milliseconds; another one than the wall clock for replays of the past.
    """

    def __init__(
        self,
        config: Config,
        region: str | None = None,
        *,
        tables: Iterable[FeatureTable] = (),
        clock: Callable[[], float] | None = None,
    ) -> None:
        self._config = config
        self._region = region or config.region
        self._redis = connect(config, self._region)
        self._clock = clock or _wall_clock_ms
        self._facts: dict[str, _TableFacts] = {
            table.name: self._facts_of(table.to_dict(config.topic_prefix), float("inf"))
            for table in tables
        }
        self._feedback: FeedbackProducer | None = None
        self._demander = Demander(self._demand, self._fetch)
        self._reads = ReadCounters(self._region)
        self._lock = threading.Lock()

    @property
    def region(self) -> str:
        """Region whose online store is read."""
        return self._region

    def get(self, table: str, key: str) -> Feature:
        """The feature of one key.

        Of a table that computes on demand, a value that is missing or too stale is asked for, and
        waited for as long as the table says (``FeatureTable.on_demand``).

        Raises:
            StoreUnavailableError: the store does not answer, after retries.
            LayoutError: what is stored under the key is not Freshet's.
        """
        return self.get_many(table, (key,))[0]

    def get_many(self, table: str, keys: Sequence[str]) -> FeatureBatch:
        """The features of many keys in one round trip (on a Redis Cluster, one to each node).

        The first read of a table makes one more, to learn its time to live. Of a table that
        computes on demand, those that are missing or too stale are asked for and waited for.

        Returns:
            The features in the order of the keys; also as arrays.

        Raises:
            StoreUnavailableError: the store does not answer, after retries.
        """
        facts, raw = self._read(table, keys)
        return FeatureBatch(table, keys, raw, self._clock(), facts.ttl_ms)

    def get_versions(self, table: str, keys: Sequence[str]) -> KeptVersions:
        """Every version of many keys' features that the store keeps, in one round trip.

        For tables that keep several (``FeatureTable.keep_versions``), so that the one with the
        smallest errors is served: see :class:`freshet.VersionChooser`.

        Returns:
            The versions, newest first, each a batch in the order of the keys.

        Raises:
            StoreUnavailableError: the store does not answer, after retries.
        """
        facts, raw = self._read(table, keys)
        return KeptVersions(table, keys, raw, self._clock(), facts.ttl_ms)

    def feedback(
        self,
        table: str,
        key: str,
        version: Version | str | None,
        error: float | None = None,
        *,
        errors: Sequence[float | None] | None = None,
        ts: int | None = None,
        model: str | None = None,
    ) -> None:
        """Tells how well a feature predicted; queued for Kafka, and sent in the background.

        Args:
            table: name of the table.
            key: entity key.
            version: of the feature that was used, as ``get`` returned it; None for a key that had
                no feature, so that the model used its default. Of a table that keeps several
                versions, always the newest, whichever was served.
            error: error of the prediction that was served, at least 0; None for a query whose label
                is not known yet.
            errors: of a table that keeps several versions, the error with each of them, newest
                first (the first is ``version``'s); None or NaN where it is not known.
            ts: event time, epoch milliseconds.
            model: name of the model.

        Raises:
            ValueError: the version or an error is not valid, or ``errors`` come without ``version``
                or ``error``.
            FeedbackQueueFullError: Kafka is slower than the caller; nothing was queued.
        """
        topic = self._table(table).feedback_topic
        self._producer().send(topic, key, version, error, ts, model, errors)

    def feedback_many(
        self,
        table: str,
        keys: Sequence[str],
        versions: Sequence[Version | str | None],
        errors: Sequence[float | None] | Any,
        *,
        kept_errors: npt.ArrayLike | None = None,
        ts: int | Sequence[int] | npt.NDArray[np.int64] | None = None,
        model: str | None = None,
    ) -> int:
        """Tells how well the features of many keys predicted.

        Args:
            table: name of the table.
            keys: entity keys [n].
            versions: of the features that were used [n], as ``FeatureBatch.versions``; of a table
                that keeps several, as ``KeptVersions.newest.versions``. A key with None had no
                feature: its error tells what that costs, and without an error it is left out.
            errors: errors of the predictions that were served [n], a sequence or an array; None or
                NaN for a query whose label is not known yet.
            kept_errors: of a table that keeps several versions, the errors with each of them
                [versions, n], newest first; NaN where it is not known.
            ts: event time of all, or of each [n], epoch milliseconds.
            model: name of the model.

        Returns:
            How many were queued.

        Raises:
            ValueError: as :meth:`feedback`, or lengths differ.
            FeedbackQueueFullError: as :meth:`feedback`; those before the full queue are queued.
        """
        times: Iterable[int | None] = (
            itertools.repeat(ts, len(keys))
            if ts is None or isinstance(ts, int | np.integer)
            else np.asarray(ts, np.int64).tolist()
        )
        listed = errors.tolist() if isinstance(errors, np.ndarray) else errors
        kept = _errors_of_each(kept_errors, len(keys))
        topic = self._table(table).feedback_topic
        return self._producer().send_many(topic, keys, versions, listed, times, kept, model)

    def flush(self, timeout_s: float = FLUSH_TIMEOUT_S) -> None:
        """Waits until Kafka has acknowledged all feedback.

        Raises:
            FeedbackLostError: some was not acknowledged, since the last flush.
        """
        if self._feedback is not None:
            self._feedback.flush(timeout_s)

    def metrics(self) -> str:
        """What this client has read and sent, in Prometheus' text format.

        An application serves it, for example at ``/metrics``; the counters are in docs/metrics.md.
        """
        with self._lock:
            feedback = self._feedback
        counts = (0, 0) if feedback is None else (feedback.delivered, feedback.lost)
        return self._reads.to_prometheus(dict(zip(("delivered", "lost"), counts, strict=True)))

    def close(self) -> None:
        """Sends what is queued and disconnects.

        Raises:
            FeedbackLostError: as :meth:`flush`.
        """
        try:
            self.flush()
        finally:
            self._redis.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def _read(self, table: str, keys: Sequence[str]) -> tuple[_TableFacts, list[bytes | None]]:
        facts = self._table(table)
        raw = self._fetch(table, keys)
        if facts.on_demand is not None:
            raw = self._demander.newer(table, keys, raw, self._clock(), facts.on_demand)
        return facts, raw

    def _demand(self, table: str, key: str) -> None:
        topic = self._table(table).feedback_topic
        self._producer().demand(topic, key, int(self._clock()))

    def _fetch(self, table: str, keys: Sequence[str]) -> list[bytes | None]:
        prefix = key_name(self._config.store_prefix, table, "")
        started_s = time.perf_counter()
        try:
            raw = fetch(self._redis, [f"{prefix}{key}".encode() for key in keys])
        except StoreUnavailableError:
            self._reads.failed(table)
            raise
        self._reads.answered(table, len(keys), raw.count(None), time.perf_counter() - started_s)
        return raw

    def _producer(self) -> FeedbackProducer:
        with self._lock:
            if self._feedback is None:
                properties = self._config.kafka_client_properties()
                self._feedback = FeedbackProducer(properties, self._region)
            return self._feedback

    def _table(self, name: str) -> _TableFacts:
        facts = self._facts.get(name)
        now = time.monotonic()
        if facts is not None and now < facts.read_again_at:
            return facts
        prefix = self._config.store_prefix
        definition = registered_table(self._redis, name, store_prefix=prefix)
        read_again_at = now + REGISTRY_REFRESH_S
        if definition is not None:
            facts = self._facts_of(definition, read_again_at)
        elif facts is None:
            self._warn_unregistered(name)
            topic = f"{self._config.topic_prefix}feedback.{name}"
            facts = _TableFacts(None, topic, None, read_again_at)
        else:
            # A store that lost its contents has lost this too; the definition is still the same.
            facts = replace(facts, read_again_at=read_again_at)
        self._facts[name] = facts
        return facts

    @staticmethod
    def _facts_of(definition: dict[str, Any], read_again_at: float) -> _TableFacts:
        return _TableFacts(
            definition["ttl_ms"],
            definition["feedback_topic"],
            OnDemandRule.of(definition),
            read_again_at,
        )

    def _warn_unregistered(self, name: str) -> None:
        known = registered_names(self._redis, store_prefix=self._config.store_prefix)
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        _log.warning(
            "table %r is not registered in the store of %s, so its values never expire here%s",
            name,
            self._region,
            hint,
        )


def _errors_of_each(
    kept_errors: npt.ArrayLike | None, count: int
) -> Sequence[Sequence[float] | None]:
    """Errors of the kept versions of each key [n][versions]."""
    if kept_errors is None:
        return [None] * count
    errors = np.asarray(kept_errors, np.float64)
    if errors.ndim != 2 or errors.shape[1] != count:
        raise ValueError(
            f"kept_errors must have the shape [versions, {count}], not {list(errors.shape)}"
        )
    rows: list[Sequence[float]] = errors.T.tolist()
    return rows


def _wall_clock_ms() -> float:
    return time.time() * 1000
