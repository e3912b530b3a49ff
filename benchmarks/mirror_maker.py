"""MirrorMaker 2 as a process of its own: copies a topic from home's broker to others.

It runs at home, and its producers reach the other brokers through the links, so that what crosses
them is in its batches and compressed as it is told, whatever the changes' writer did.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from benchmarks.context import REPOSITORY, Context
from freshet.stack.layout import java
from freshet.stack.processes import TERMINATE_DEADLINE_S, start_process, stop_processes
from freshet.wan.regions import Regions

HOME_ALIAS = "home"
"""Name of home's broker for MirrorMaker; it goes before the topics that it makes."""

TUNED = {
    "linger.ms": "100",
    "batch.size": str(1024 * 1024),
    "max.request.size": str(4 * 1024 * 1024),
    "buffer.memory": str(128 * 1024 * 1024),
}
"""Of its producers: fewer, larger batches, without which a long way is slow and dear."""

TUNED_POLL_RECORDS = 5_000

_HEAP_MB = 768
_BUILD_DEADLINE_S = 600.0

# Each alias has its own, and one broker a region.
_REPLICATION = dict.fromkeys(
    (
        "replication.factor",
        "checkpoints.topic.replication.factor",
        "heartbeats.topic.replication.factor",
        "offset-syncs.topic.replication.factor",
        "config.storage.replication.factor",
        "offset.storage.replication.factor",
        "status.storage.replication.factor",
    ),
    "1",
)

_LOG4J = """\
status = warn
appenders = file
appender.file.type = File
appender.file.name = file
appender.file.fileName = {log}
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d %-5p %c{{1}} - %m%n
rootLogger.level = info
rootLogger.appenderRef.file.ref = file
"""


def jars(context: Context) -> Path:
    """Folder of its jars, of the release that the brokers are of; fetched when missing.

    Raises:
        RuntimeError: Maven failed.
    """
    folder = context.cache / "mirror-maker"
    complete = folder / ".complete"
    pom = REPOSITORY / "benchmarks" / "mirror-maker" / "pom.xml"
    versions = pom.read_text(encoding="utf-8") + (REPOSITORY / "pom.xml").read_text("utf-8")
    if complete.exists() and complete.read_text(encoding="utf-8") == versions:
        return folder
    context.say("fetching MirrorMaker")
    done = subprocess.run(
        [
            os.environ.get("MVN", "mvn"),
            *("-q", "-B", "-ntp", "-f", str(pom), f"-Djars={folder}", "package"),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=_BUILD_DEADLINE_S,
    )
    if done.returncode:
        raise RuntimeError(f"Maven did not bring MirrorMaker:\n{done.stdout}{done.stderr}")
    complete.write_text(versions, encoding="utf-8")
    return folder


def copied_topic(topic: str) -> str:
    """Name of a topic's copy."""
    return f"{HOME_ALIAS}.{topic}"


@contextlib.contextmanager
def mirror_maker(
    folder: Path,
    regions: Regions,
    home: str,
    destinations: tuple[str, ...],
    topic: str,
    *,
    compression: str,
    tuned: bool,
    jars: Path,
) -> Iterator[None]:
    """MirrorMaker while it runs.

    Args:
        folder: for its settings and log.
        regions: whose brokers it connects.
        home: from here.
        destinations: to these.
        topic: that it copies.
        compression: of its producers.
        tuned: whether it batches more than by default.
        jars: of it.
    """
    settings = _settings(regions, home, destinations, topic, compression, tuned)
    file = folder / "mirror-maker.properties"
    file.write_text("".join(f"{key} = {value}\n" for key, value in settings.items()), "utf-8")
    log, log4j = folder / "mirror-maker.log", folder / "log4j2.properties"
    log4j.write_text(_LOG4J.format(log=log), encoding="utf-8")
    process = start_process(
        "MirrorMaker",
        [
            java(),
            f"-Xmx{_HEAP_MB}m",
            "-Djava.awt.headless=true",
            f"-Dlog4j2.configurationFile={log4j}",
            *("-cp", f"{jars}/*", "org.apache.kafka.connect.mirror.MirrorMaker", str(file)),
        ],
        stack_id=regions.id,
        output=folder / "mirror-maker.out",
        log=log,
    )
    try:
        yield
    finally:
        is_alive = process.is_alive()
        stop_processes([process], TERMINATE_DEADLINE_S)
    if not is_alive:
        raise process.failure("ended by itself")


def _settings(
    regions: Regions,
    home: str,
    destinations: tuple[str, ...],
    topic: str,
    compression: str,
    tuned: bool,
) -> Mapping[str, str]:
    aliases = {region: region.replace(":", "-") for region in destinations}
    settings = {
        "clusters": ", ".join([HOME_ALIAS, *aliases.values()]),
        f"{HOME_ALIAS}.bootstrap.servers": regions[home].bootstrap,
        **_REPLICATION,
        # Else there would be a flow, and its traffic, between every two brokers both ways.
        "emit.heartbeats.enabled": "false",
    }
    if tuned:
        settings["scheduled.rebalance.max.delay.ms"] = "0"
        settings[f"{HOME_ALIAS}.consumer.max.poll.records"] = str(TUNED_POLL_RECORDS)
    producer = {"compression.type": compression} | (TUNED if tuned else {})
    for region, alias in aliases.items():
        settings[f"{alias}.bootstrap.servers"] = regions.addresses(home, region).bootstrap
        settings |= {f"{alias}.producer.{key}": value for key, value in producer.items()}
        settings[f"{HOME_ALIAS}->{alias}.enabled"] = "true"
        settings[f"{HOME_ALIAS}->{alias}.topics"] = topic
    return settings
