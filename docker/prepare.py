"""Makes what a job needs and Flink does not make, before the job itself starts.

::

    python docker/prepare.py feature --table my_table.yaml --config freshet.yaml

On Kubernetes, where Flink's operator starts jobs, it runs before each start of a JobManager: it
checks the configuration and the definitions, makes missing topics, and registers tables. What is
there already is left alone.

What is wrong, or refused, ends it at once. While a server of the region does not answer, it tries
again: a container that ends is started anew by Kubernetes only after minutes. A region's job does
without home's Kafka, and so does this.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from freshet.config import Config
from freshet.errors import FreshetError, NotAnsweringError
from freshet.stack.signals import exit_on_signals
from freshet.submission import (
    ready_for_multicast,
    ready_for_reports,
    ready_for_tables,
    ready_within_region,
)
from freshet.table import FeatureTable, load_table
from freshet.topics import DEFAULT_PARTITIONS

FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 5.0
"""Between two attempts: a server that is back is noticed within about this."""

Ready = tuple[list[str], list[str]]
"""Topics that were made, and warnings."""


def prepare(kind: str, files: Sequence[Path], config: Config, partitions: int) -> None:
    """Makes what a job of a kind needs, and prints it; waits for the servers that it needs.

    Raises:
        FreshetError: a definition is wrong, or a server refuses.
    """
    tables = [load_table(file) for file in files]
    created, warnings = when_they_answer(lambda: ready(kind, tables, config, partitions))
    for topic in created:
        print(f"Topic {topic} is made.")
    for warning in warnings:
        print(f"Warning: {warning}")
    print(f"All is ready for the {kind} job of {', '.join(table.name for table in tables)}.")


def ready(kind: str, tables: Sequence[FeatureTable], config: Config, partitions: int) -> Ready:
    """Makes what a job of a kind needs.

    Raises:
        NotAnsweringError: a server that it needs does not answer.
        FreshetError: a definition is wrong, or a server refuses.
    """
    if kind == "feature":
        return ready_for_tables(tables, config, partitions), []
    if kind == "multicast":
        return ready_for_multicast(tables, config, partitions)
    created = ready_within_region(tables, config)
    try:
        return created + ready_for_reports(config), []
    except NotAnsweringError as error:
        # Home's own jobs make this topic, too, and the region's has data to keep without it.
        return created, [f"home does not get reports of this region yet: {error}"]


def when_they_answer(attempt: Callable[[], Ready]) -> Ready:
    """The result of an attempt, which is repeated while servers do not answer."""
    pause_s = FIRST_PAUSE_S
    while True:
        try:
            return attempt()
        except NotAnsweringError as error:
            print(f"prepare: {error}; trying again in {pause_s:g} s", file=sys.stderr, flush=True)
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)


def main() -> None:
    """Reads the configuration and the definitions."""
    parser = argparse.ArgumentParser(description="Make what a job needs before it starts.")
    parser.add_argument("kind", choices=("feature", "multicast", "region"))
    parser.add_argument(
        "--table", required=True, action="append", type=Path, help="table definition, .py or .yaml"
    )
    parser.add_argument("--config", required=True, type=Path, help="the region's configuration")
    parser.add_argument(
        "--partitions", type=int, default=DEFAULT_PARTITIONS, help="of topics keyed by entity"
    )
    arguments = parser.parse_args()
    try:
        # The first process of a container is not ended by a signal that it does not handle.
        with exit_on_signals():
            config = Config.load(arguments.config)
            prepare(arguments.kind, arguments.table, config, arguments.partitions)
    except FreshetError as error:
        sys.exit(f"prepare: {error}")


if __name__ == "__main__":
    main()
