"""Features of readings that arrive now, computed at home and sent to other regions.

::

    CPU readings, one a second and machine --> feature job --> Redis --> model --> feedback
                 changes --> multicast job --> region jobs of a waypoint and two destinations

All of it is on this machine, with the data and the regions of the demo. What shows a running system
watches this one: the demo replays a recording, so its features are as old as that.
"""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import yaml

from benchmarks.pipeline import Pace, in_background
from freshet.client import Client
from freshet.config import Config
from freshet.demo.model import Model, naive_errors
from freshet.demo.readings import Readings
from freshet.demo.regions import DESTINATIONS, HOME, region_configs
from freshet.replay import EventReplayer
from freshet.stack import FlinkOptions, KafkaOptions, Stack, StackOptions
from freshet.submission import (
    prepare_multicast,
    prepare_region,
    prepare_tables,
    submit_together,
)
from freshet.table import load_table

TABLE = "cpu_stl"
SEASONS = 2
STEP_S = 1.0
"""A reading of each machine, of five minutes in the recording, comes every second."""


def options(prometheus: bool = False) -> StackOptions:
    """Of the servers that it needs; with Flink's reporter if asked for."""
    return StackOptions(
        regions=(HOME, *DESTINATIONS),
        kafka=KafkaOptions(short_lived=True),
        flink=FlinkOptions(task_managers=2, slots=3, short_lived=True, prometheus=prometheus),
    )


class LiveReadings:
    """The jobs, readings and model; they run on servers of the ``options``."""

    def __init__(self, stack: Stack, folder: Path) -> None:
        """Writes the table's definition.

        Args:
            stack: that runs.
            folder: for the definition.
        """
        self._stack = stack
        self._readings = Readings.load()
        self._file = folder / f"{TABLE}.yaml"
        self._file.write_text(yaml.safe_dump(self._definition(), sort_keys=False), "utf-8")
        self.table = load_table(self._file)

    @property
    def config(self) -> Config:
        """Of the home region, where all regions are described."""
        return region_configs(self._stack.config)[HOME]

    @contextlib.contextmanager
    def arriving(self, client: Client) -> Iterator[None]:
        """Submits the jobs and fills their windows; readings arrive until the block ends.

        Args:
            client: with the table, for the model.

        Raises:
            FreshetError: a job did not start, or a reading was not sent.
        """
        self._submit()
        replayer = self._replayer()
        first = SEASONS * self._readings.period
        history = self._readings.values[:first]
        now_ms = time.time() * 1_000
        ago = np.arange(first, 0, -1, dtype=np.int64)
        replayer.produce_step(history, int(now_ms) - int(STEP_S * 1_000) * ago)
        scale = naive_errors(history)
        model = Model(client, TABLE, self._readings.keys, scale, int(STEP_S * 1_000), horizon=1)
        rows = itertools.cycle(range(first, len(self._readings.values)))
        pace = Pace(1 / STEP_S)
        with in_background(lambda: self._arrive(replayer, model, next(rows), pace)):
            yield

    def _arrive(self, replayer: EventReplayer, model: Model, row: int, pace: Pace) -> None:
        """One reading of each machine, at its time."""
        pace.wait()
        forecast = model.predict()
        actual, now_ms = self._readings.values[row : row + 1], [int(time.time() * 1_000)]
        replayer.produce_step(actual, now_ms)
        model.learn(forecast, actual, now_ms)
        replayer.flush()

    def _submit(self) -> None:
        home, *others = region_configs(self._stack.config).values()
        jobs = [prepare_tables([self._file], self._stack.config, stack=self._stack)]
        jobs += [prepare_region([self._file], config, stack=self._stack) for config in others]
        jobs.append(prepare_multicast([self._file], home, stack=self._stack))
        submit_together(jobs, stack=self._stack)

    def _replayer(self) -> EventReplayer:
        config = self._stack.config
        definition = self.table.to_dict(config.topic_prefix)
        return EventReplayer(config, definition, self._readings.keys, feedback_topics=())

    def _definition(self) -> dict[str, object]:
        period = self._readings.period
        return {
            "name": TABLE,
            "source": {"key": "key", "timestamp": "ts", "value": "value"},
            "window": {"points": SEASONS * period},
            "function": {"name": "stl", "period": period},
            "policy": "regret-proportional",
            "budget": {"kind": "time-share", "share": 0.004},
            "regions": [HOME, *DESTINATIONS],
            "freshness_slo": "2s",
        }
