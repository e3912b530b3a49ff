"""What runs before each start of a JobManager waits for servers, and for nothing else.

Goal: an outage keeps a job from starting for no longer than it lasts, and what never passes by
itself is told at once.

Method: docker/prepare.py as the chart runs it, with a real Kafka and a Redis that is started late;
and within this process, with brokers that answer as a list says.

Fails when: it ends while a server is away, does not end soon after the server is back, waits for
one that the job can do without, or tries again what was refused.
"""

from __future__ import annotations

import runpy
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from redis import Redis

from freshet.config import Config
from freshet.errors import FreshetError, NotAnsweringError
from freshet.kafka_access import BrokerRefusesError
from freshet.regions import Region
from freshet.stack.kafka import KafkaBroker
from freshet.stack.layout import CHECKOUT
from freshet.stack.ports import LOOPBACK, PortPicker
from freshet.stack.redis import RedisOptions, RedisServer
from freshet.store.registry import registered_names
from freshet.topics import Topic
from tests.stack.waiting import wait_for

SCRIPT = CHECKOUT / "docker/prepare.py"
HOME, AWAY, WAY = "aws:eu-west-1", "gcp:us-east1-b", "aws:us-east-1"
SOON_S = 10.0
"""After a server is back: the longest pause, and what a busy machine needs."""

TABLE = {
    "name": "cpu",
    "source": {"key": "key", "timestamp": "ts", "value": "value"},
    "window": {"points": 12},
    "function": {"name": "aggregate"},
    "freshness_slo": "1m",
    "regions": [HOME, AWAY],
}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A definition."""
    file = tmp_path / "cpu.yaml"
    file.write_text(yaml.safe_dump(TABLE), encoding="utf-8")
    return file


def config_of(region: str) -> Config:
    """The configuration of a region whose servers are nowhere."""
    return Config(
        kafka_bootstrap=f"{LOOPBACK}:1",
        redis={} if region == WAY else {region: f"redis://{LOOPBACK}:1/0"},
        home_region=HOME,
        region=region,
        regions={
            name: Region(
                None if name == region else f"{LOOPBACK}:1",
                role="waypoint" if name == WAY else "destination",
            )
            for name in (HOME, AWAY, WAY)
        },
    )


class Brokers:
    """Stand for the regions' Kafkas: each question is answered, or raises what a test says."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.errors: dict[str | None, list[FreshetError]] = {}
        """By the region that is asked for, the next ones first; None is the configuration's."""

        self.asked: dict[str, Topic] = {}
        """Topics that there should be."""

        self.pauses: list[float] = []
        """For how long was waited."""

        monkeypatch.setattr("freshet.submission.create_missing_topics", self._create)
        monkeypatch.setattr(time, "sleep", self.pauses.append)

    def _create(
        self, _config: Config, topics: Iterable[Topic], region: str | None = None
    ) -> list[str]:
        if self.errors.get(region):
            raise self.errors[region].pop(0)
        self.asked |= {topic.name: topic for topic in topics}
        return []


@pytest.fixture
def brokers(monkeypatch: pytest.MonkeyPatch) -> Brokers:
    """Brokers that answer."""
    return Brokers(monkeypatch)


def prepare(kind: str, table: Path, config: Config, partitions: int = 4) -> None:
    """What the script does with its arguments."""
    runpy.run_path(str(SCRIPT))["prepare"](kind, [table], config, partitions)


def test_partitions_are_those_of_a_multicast_jobs_topics_too(brokers: Brokers, table: Path) -> None:
    prepare("multicast", table, config_of(HOME), 12)
    assert brokers.asked["changes.cpu"].partitions == 12
    assert brokers.asked["progress"].partitions == 1


def test_the_broker_of_its_own_region_is_waited_for(
    brokers: Brokers, table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    brokers.errors[None] = [NotAnsweringError(f"no answer {number}") for number in range(6)]
    prepare("region", table, config_of(WAY))
    assert brokers.pauses == [0.5, 1, 2, 4, 5, 5]
    told = capsys.readouterr()
    assert "prepare: no answer 0; trying again in 0.5 s" in told.err
    assert "All is ready for the region job of cpu." in told.out


def test_homes_broker_is_not_waited_for_by_a_region(
    brokers: Brokers, table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    brokers.errors[HOME] = [NotAnsweringError("home does not answer")]
    prepare("region", table, config_of(WAY))
    assert brokers.pauses == []
    assert f"inbox.{WAY.replace(':', '.')}" in brokers.asked
    told = capsys.readouterr().out
    assert "Warning: home does not get reports of this region yet: home does not answer" in told
    assert "All is ready" in told


@pytest.mark.parametrize("region", [None, HOME])
def test_what_is_refused_is_not_tried_again(
    brokers: Brokers, table: Path, region: str | None
) -> None:
    brokers.errors[region] = [BrokerRefusesError("the login is wrong")]
    with pytest.raises(BrokerRefusesError):
        prepare("region", table, config_of(WAY))
    assert brokers.pauses == []


class Prepared:
    """The script, run as the chart runs it, against one Redis."""

    def __init__(self, folder: Path, table: Path, kafka: KafkaBroker, redis_url: str) -> None:
        self._config = folder / "freshet.yaml"
        values: dict[str, Any] = {
            "kafka_bootstrap": kafka.bootstrap,
            "home_region": HOME,
            "topic_prefix": f"{uuid.uuid4().hex}.",
            "redis": {HOME: redis_url},
        }
        self._config.write_text(yaml.safe_dump(values), encoding="utf-8")
        self._output = folder / "output"
        with self._output.open("w") as output:
            self.process = subprocess.Popen(
                [
                    *(sys.executable, str(SCRIPT), "feature", "--table", str(table)),
                    *("--config", str(self._config)),
                ],
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    @property
    def told(self) -> str:
        """What it has printed."""
        return self._output.read_text(encoding="utf-8")


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[RedisServer]:
    """A Redis that does not run yet."""
    port = PortPicker().pick()
    server = RedisServer(HOME, port, tmp_path / "redis", tmp_path, RedisOptions(), uuid.uuid4().hex)
    yield server
    server.stop()


@pytest.mark.integration
def test_it_is_ready_soon_after_a_server_is_back(
    tmp_path: Path, table: Path, kafka: KafkaBroker, redis: RedisServer
) -> None:
    prepared = Prepared(tmp_path, table, kafka, redis.url)
    wait_for(lambda: prepared.told.count("trying again") > 1, "it tries again")
    assert prepared.process.poll() is None
    redis.start()
    assert prepared.process.wait(SOON_S) == 0, prepared.told
    assert "All is ready for the feature job of cpu." in prepared.told
    assert registered_names(Redis.from_url(redis.url)) == ["cpu"]


@pytest.mark.integration
def test_a_login_that_is_refused_ends_it_at_once(
    tmp_path: Path, table: Path, kafka: KafkaBroker, redis: RedisServer
) -> None:
    redis.start()
    (tmp_path / "password").write_text("wrong", encoding="utf-8")
    url = redis.url.replace("://", f"://me:${{file:{tmp_path / 'password'}}}@")
    prepared = Prepared(tmp_path, table, kafka, url)
    assert prepared.process.wait(SOON_S) == 1, prepared.told
    assert "correct the user and the password" in prepared.told
    assert "trying again" not in prepared.told


@pytest.mark.integration
def test_it_ends_when_its_pod_does(
    tmp_path: Path, table: Path, kafka: KafkaBroker, redis: RedisServer
) -> None:
    prepared = Prepared(tmp_path, table, kafka, redis.url)
    wait_for(lambda: "trying again" in prepared.told, "it tries again")
    prepared.process.terminate()
    assert prepared.process.wait(SOON_S) == 128 + signal.SIGTERM
