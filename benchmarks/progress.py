"""The newest reports of a multicast job and of region jobs, as they come to ``progress``."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from benchmarks.pipeline import in_background
from freshet import avro

Report = dict[str, Any]


class Reports:
    """All reports of one table so far.

    Args:
        table: whose.
    """

    def __init__(self, table: str) -> None:
        self.table = table
        self.all: list[Report] = []

    def of(self, region: str) -> list[Report]:
        """A region's; home's are the multicast job's."""
        return [report for report in self.all if report["region"] == region]

    def newest(self, region: str) -> Report | None:
        """A region's last one."""
        return next((each for each in reversed(self.all) if each["region"] == region), None)

    def plan(self, home: str) -> Report:
        """The plan in force; empty before the first."""
        report = self.newest(home)
        return dict(json.loads(report["plan"])) if report and report["plan"] else {}

    def edges(self, home: str) -> set[tuple[str, str]]:
        """The plan's links."""
        stripes = self.plan(home).get("stripes", ())
        return {(u, v) for stripe in stripes for u, v in stripe["edges"]}


@contextlib.contextmanager
def reports(bootstrap: str, table: str) -> Iterator[Reports]:
    """Follows the reports of a table as long as the block lasts.

    Args:
        bootstrap: of home's broker.
        table: whose.
    """
    found = Reports(table)
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "bench-reports", "enable.auto.commit": False}
    )

    def read() -> None:
        for message in consumer.consume(1_000, 0.1):
            if message.error() is None and message.value():
                name, report = avro.decode(message.value())
                if name == "RegionReport" and report["table"] == table:
                    found.all.append(report)

    try:
        consumer.assign([TopicPartition("progress", 0, OFFSET_BEGINNING)])
        with in_background(read):
            yield found
    finally:
        consumer.close()
