"""Takes snapshots of a running deployment; what was read for one is not read for the next."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any

from freshet.config import Config
from freshet.errors import FreshetError
from freshet.multicast.settings import Link
from freshet.multicast.standing import LinkStanding, Standing, total_usd
from freshet.stack.flink_rest import FlinkRest
from freshet.status.flink_reading import FlinkReader, FlinkReading, TableMetrics, metric_name
from freshet.status.kafka_reading import KafkaReader
from freshet.status.rates import Rates
from freshet.status.snapshot import Snapshot, TableStatus
from freshet.status.source import Source
from freshet.store.connection import connect
from freshet.store.registry import registered_names, registered_tables

PATIENCE_S = 2.0
"""How long a snapshot waits for a server; after that it has what that one told last."""

TIMEOUT_S = 5.0
"""After which a request to Flink or Kafka has failed."""

_CLOSE_S = 1.0
_SECONDS_PER_HOUR = 3_600.0

Definitions = dict[str, dict[str, Any]]
"""Tables' definitions as they are in the store, by the table's name."""


@dataclass(frozen=True)
class _KafkaReading:
    """What home's Kafka told."""

    read_at_s: float
    """Of ``time.monotonic()``."""

    plans: Mapping[str, Mapping[str, Any]]
    links: list[LinkStanding]
    regions: list[Standing]
    tables: frozenset[str]
    """Those that a job has reported of."""

    ends: Mapping[str, int]
    """Records that were ever written, by topic."""


@dataclass
class _Prices:
    """Of all links that the profiles have; read once, since that takes a while."""

    config: Config
    _usd_per_gb: dict[Link, float] | None = field(default=None, init=False)

    def usd_per_gb(self) -> Mapping[Link, float]:
        """Empty if there are no profiles, which only planning needs."""
        if self._usd_per_gb is None:
            from freshet.multicast.building import profiles_folder
            from freshet.planner import load_network

            try:
                network = load_network(profiles_folder(self.config))
            except FreshetError:
                self._usd_per_gb = {}
            else:
                prices, regions = network.price_usd_per_gb.tolist(), network.regions
                self._usd_per_gb = {
                    (u, v): prices[i][j]
                    for i, u in enumerate(regions)
                    for j, v in enumerate(regions)
                    if i != j
                }
        return self._usd_per_gb


class StatusReader:
    """Takes snapshots of one deployment; not safe to share between threads.

    Each server is asked in a thread of its own. One that is away does not keep the others' figures
    from being shown, and neither its own last ones, beside what is wrong with it.
    """

    def __init__(self, config: Config) -> None:
        """Describes the reader; the first snapshot connects.

        Args:
            config: of the home region.

        Raises:
            ConfigError: a secret is not there any more.
        """
        self.config = config
        self._rates = Rates()
        self._prices = _Prices(config)
        self._kafka = KafkaReader(config, TIMEOUT_S)
        self._stores = {region: connect(config, region) for region in config.redis}
        self._of_kafka = Source("Kafka", self._read_kafka)
        self._of_flink: Source[FlinkReading] | None = None
        if config.flink_rest is not None:
            flink = FlinkReader(FlinkRest(config.flink_rest, timeout_s=TIMEOUT_S))
            self._of_flink = Source("Flink", flink.read)
        self._of_stores: dict[str, Source[Definitions]] = {
            region: Source(f"Redis of {region}", lambda r=region: self._definitions(r))  # type: ignore[misc]
            for region in config.redis
        }

    def __enter__(self) -> StatusReader:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends the connections."""
        deadline_s = time.monotonic() + _CLOSE_S
        idle = {s.name for s in self._sources() if s.is_idle(deadline_s - time.monotonic())}
        # What a thread still uses ends with the process.
        if self._of_kafka.name in idle:
            self._kafka.close()
        for region, store in self._stores.items():
            if self._of_stores[region].name in idle:
                store.close()

    def snapshot(self, patience_s: float = PATIENCE_S) -> Snapshot:
        """Reads what has changed.

        Args:
            patience_s: how long it waits for servers, seconds.
        """
        began_s = time.monotonic()
        sources = self._sources()
        home = self._of_stores.get(self.config.home_region)
        if home is not None and home.last is None:
            # Kafka is asked for the topics that the definitions name.
            home.start()
            home.finish(began_s + patience_s)
        for source in sources:
            source.start()
        for source in sources:
            source.finish(began_s + patience_s)
        return self._put_together(began_s)

    def _sources(self) -> list[Source[Any]]:
        flink: list[Source[Any]] = [] if self._of_flink is None else [self._of_flink]
        return [self._of_kafka, *flink, *self._of_stores.values()]

    # Reading, each in its source's thread.

    def _read_kafka(self) -> _KafkaReading:
        kafka, prices = self._kafka, self._prices.usd_per_gb()
        kafka.read_reports()
        definitions = self._known_definitions()
        topics = [
            topic
            for table in kafka.tables | definitions.keys()
            for topic in self._topics_of(table, definitions.get(table)).values()
        ]
        slo_ms = {table: each["freshness_slo_ms"] for table, each in definitions.items()}
        read_at_s, now_ms = time.monotonic(), time.time_ns() // 1_000_000
        return _KafkaReading(
            read_at_s=read_at_s,
            plans=dict(kafka.reports.plans),
            links=kafka.reports.links(prices),
            regions=kafka.reports.standings(prices, now_ms, slo_ms),
            tables=frozenset(kafka.tables),
            ends=kafka.ends(topics),
        )

    def _definitions(self, region: str) -> Definitions:
        store, prefix = self._stores[region], self.config.store_prefix
        if region == self.config.home_region:
            return registered_tables(store, store_prefix=prefix)
        registered_names(store, store_prefix=prefix)  # only whether it answers
        return {}

    # Putting together, in the caller's thread.

    def _known_definitions(self) -> Definitions:
        home = self._of_stores.get(self.config.home_region)
        return (home.last or {}) if home is not None else {}

    def _topics_of(self, table: str, definition: Mapping[str, Any] | None) -> dict[str, str]:
        """What a table's topics are called; events only of a registered one."""
        prefix = self.config.topic_prefix
        topics = {
            "changes": f"{prefix}changes.{table}",
            "dead_letters": f"{prefix}dead-letters.{table}",
        }
        return topics if definition is None else {**topics, "events": definition["source"]["topic"]}

    def _put_together(self, began_s: float) -> Snapshot:
        kafka = self._of_kafka.last
        flink = FlinkReading() if self._of_flink is None else self._of_flink.last or FlinkReading()
        definitions = self._known_definitions()
        names = set(definitions) | (kafka.tables if kafka is not None else set())
        links = () if kafka is None else tuple(kafka.links)
        usd = total_usd(links)
        usd_per_s = None if kafka is None else self._rates.rate("usd", usd, kafka.read_at_s)
        return Snapshot(
            taken_at_ms=time.time_ns() // 1_000_000,
            took_ms=(time.monotonic() - began_s) * 1_000,
            home_region=self.config.home_region,
            sources=tuple(source.status() for source in self._sources()),
            jobs=flink.jobs,
            tables=tuple(
                self._table(
                    name,
                    definitions.get(name),
                    (flink.metrics or {}).get(metric_name(name), {}),
                    kafka,
                )
                for name in sorted(names)
            ),
            regions=() if kafka is None else _aged(kafka),
            links=links,
            plans={} if kafka is None else kafka.plans,
            usd=usd,
            usd_per_h=None if usd_per_s is None else usd_per_s * _SECONDS_PER_HOUR,
        )

    def _table(
        self,
        name: str,
        definition: Mapping[str, Any] | None,
        metrics: TableMetrics,
        kafka: _KafkaReading | None,
    ) -> TableStatus:
        ends: dict[str, int | None] = {}
        rates: dict[str, float | None] = {}
        for role, topic in self._topics_of(name, definition).items():
            if kafka is not None:
                ends[role] = kafka.ends.get(topic)
                rates[role] = self._rates.rate((name, role), ends[role], kafka.read_at_s)
        return TableStatus(
            table=name,
            policy=None if definition is None else definition["policy"],
            slo_ms=None if definition is None else definition["freshness_slo_ms"],
            keys=_whole(metrics.get("keys")),
            pending_keys=_whole(metrics.get("pendingKeys")),
            regret=metrics.get("estimatedRegret"),
            changes=ends.get("changes"),
            updates_per_s=rates.get("changes"),
            events_per_s=rates.get("events"),
            updates_failed=_whole(metrics.get("updatesFailed")),
            staleness_p50_ms=metrics.get("stalenessAtWriteMs_median"),
            staleness_p99_ms=metrics.get("stalenessAtWriteMs_p99"),
            dead_letters=ends.get("dead_letters"),
        )


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)


def _aged(kafka: _KafkaReading) -> tuple[Standing, ...]:
    """The regions' standings, heard as long ago as that is now."""
    since_s = time.monotonic() - kafka.read_at_s
    return tuple(replace(each, heard_ago_s=each.heard_ago_s + since_s) for each in kafka.regions)
