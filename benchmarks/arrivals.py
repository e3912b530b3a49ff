"""When probes reach each region: its Redis, or a copy of the topic on its broker."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition
from redis import Redis

from benchmarks.change_stream import Sent
from benchmarks.pipeline import in_background
from benchmarks.wide_area import wait_for
from freshet.store.layout import key_name

_REQUEST_TIMEOUT_S = 30.0
_PAUSE_S = 0.004
_PROBE = b"probe-"


class Arrivals:
    """When each probe was there.

    Args:
        regions: that probes go to.
    """

    def __init__(self, regions: tuple[str, ...]) -> None:
        self.at_s: dict[str, dict[bytes, float]] = {region: {} for region in regions}
        """Epoch seconds, by region and probe."""

    def lags_s(self, sent: Mapping[bytes, float], *regions: str) -> list[float]:
        """From sending to arriving, of each of these probes that has arrived in these regions.

        Args:
            sent: when each was sent.
            regions: that count; none for all.
        """
        arrived = [self.at_s[region] for region in regions or self.at_s]
        return [there[key] - at for there in arrived for key, at in sent.items() if key in there]

    def arrive(self, sent: Mapping[bytes, float], deadline_s: float, *regions: str) -> bool:
        """As :meth:`wait`; whether they came in time."""
        try:
            self.wait(sent, deadline_s, *regions)
        except RuntimeError:
            return False
        return True

    def wait(self, sent: Mapping[bytes, float], deadline_s: float, *regions: str) -> None:
        """Waits until these probes are in these regions; none for all.

        Raises:
            RuntimeError: they are not in time.
        """
        for region in regions or self.at_s:
            arrived = self.at_s[region]
            wait_for(
                lambda arrived=arrived: all(key in arrived for key in sent),
                deadline_s,
                f"every one of {len(sent)} probes is in {region}",
            )


@contextlib.contextmanager
def in_stores(
    urls: Mapping[str, str], table: str, sent: Sent, pause_s: float = _PAUSE_S
) -> Iterator[Arrivals]:
    """Looks for probes in online stores as long as the block lasts.

    Args:
        urls: of each region's Redis.
        table: of the probes.
        sent: the sender's count of them, which grows.
        pause_s: between two looks, which is how exact the times are.
    """
    arrivals = Arrivals(tuple(urls))
    stores = {region: Redis.from_url(url) for region, url in urls.items()}

    def look() -> None:
        for region, store in stores.items():
            arrived = arrivals.at_s[region]
            awaited = [key for key in list(sent.probes) if key not in arrived]
            if not awaited:
                continue
            found = store.mget([key_name("", table, key.decode()) for key in awaited])
            now = time.time()
            arrived |= {
                key: now for key, value in zip(awaited, found, strict=True) if value is not None
            }
        time.sleep(pause_s)

    with in_background(look):
        yield arrivals
    for store in stores.values():
        store.close()


@contextlib.contextmanager
def in_topics(bootstraps: Mapping[str, str], topic: str) -> Iterator[Arrivals]:
    """Reads a topic on several brokers as long as the block lasts.

    Args:
        bootstraps: of each region's broker.
        topic: that probes come to; it may come into being later.
    """
    arrivals = Arrivals(tuple(bootstraps))
    with contextlib.ExitStack() as running:
        for region, bootstrap in bootstraps.items():
            consumer = Consumer(
                {
                    "bootstrap.servers": bootstrap,
                    "group.id": "bench-arrivals",
                    "enable.auto.commit": False,
                    "fetch.wait.max.ms": 50,
                }
            )
            running.callback(consumer.close)
            running.enter_context(in_background(_reader(consumer, topic, arrivals.at_s[region])))
        yield arrivals


def _reader(consumer: Consumer, topic: str, arrived: dict[bytes, float]) -> Callable[[], None]:
    """A step that takes in what has come."""
    assigned = False

    def read() -> None:
        nonlocal assigned
        if not assigned:
            found = consumer.list_topics(timeout=_REQUEST_TIMEOUT_S).topics.get(topic)
            if found is None or not found.partitions:
                time.sleep(0.1)
                return
            places = [TopicPartition(topic, each, OFFSET_BEGINNING) for each in found.partitions]
            consumer.assign(places)
            assigned = True
        messages = consumer.consume(1_000, 0.01)
        now = time.time()
        for message in messages:
            key = message.key()
            if message.error() is None and key.startswith(_PROBE):
                arrived.setdefault(key, now)

    return read
