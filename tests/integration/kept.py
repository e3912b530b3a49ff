"""Savepoints of an earlier build, with all that had been in the topics, as they are kept.

A folder of a release has

- ``facts.json``: the build, the parallelism, and what was counted,
- ``table.py.txt``: the definition,
- ``topics.json.gz``: every record, in order, of every topic,
- ``feature.gz``, ``multicast.gz``, ``region.gz``: a savepoint's one file.

``python -m tests.releases.make_savepoints`` writes it.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from freshet.stack.layout import CHECKOUT
from tests.integration.topics import Record, Topics
from tests.reference.model import Event, Feedback, Input, Version

FOLDER = CHECKOUT / "tests" / "data" / "savepoints"
SAVEPOINT_FILE = "_metadata"
"""Flink's; state that is small enough is in it."""

KeptTopics = dict[str, tuple[int, list[Record]]]
"""Partitions and records of each topic, without the prefix."""


def releases() -> list[str]:
    """Those that savepoints are kept of."""
    return sorted(folder.name for folder in FOLDER.iterdir())


class Kept:
    """What is kept of one release."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.facts: dict[str, Any] = json.loads((folder / "facts.json").read_text("utf-8"))
        self.definition = (folder / "table.py.txt").read_text("utf-8")
        self.topics = _read_topics(folder / "topics.json.gz")

    def savepoint(self, kind: str, scratch: Path) -> str:
        """Unpacks a job's savepoint; returns its path."""
        target = scratch / kind
        target.mkdir(parents=True)
        packed = (self._folder / f"{kind}.gz").read_bytes()
        (target / SAVEPOINT_FILE).write_bytes(gzip.decompress(packed))
        return str(target)

    def replay(self, topics: Topics, prefix: str) -> None:
        """Makes the topics anew, each record at its partition and offset."""
        topics.create({prefix + name: partitions for name, (partitions, _) in self.topics.items()})
        for name, (_, records) in self.topics.items():
            for record in records:
                topics.send(
                    prefix + name,
                    record.value,
                    record.key,
                    record.partition,
                    # Heartbeats have event time there; others of years ago would be deleted.
                    timestamp=record.timestamp_ms if record.headers else 0,
                    headers=list(record.headers),
                )
        topics.flush()
        for name, (_, records) in self.topics.items():
            ends = {r.partition: r.offset + 1 for r in records}
            assert topics.ends(prefix + name) == ends, f"{name} has another end now"

    def inputs(self) -> list[Input]:
        """Events and feedback, each once."""
        table = self.facts["table"]
        events = [_event(fields) for fields in self._json(f"events.{table}")]
        feedback = [_feedback(fields) for fields in self._json(f"feedback.{table}")]
        return [*dict.fromkeys(events), *feedback]

    def _json(self, topic: str) -> Iterable[dict[str, Any]]:
        _, records = self.topics[topic]
        return [json.loads(record.value) for record in records if record.value is not None]


def write(
    folder: Path,
    facts: Mapping[str, Any],
    definition: str,
    topics: KeptTopics,
    savepoints: Mapping[str, Path],
) -> None:
    """Writes what :class:`Kept` reads."""
    folder.mkdir(parents=True)
    (folder / "facts.json").write_text(json.dumps(dict(facts), indent=2) + "\n", "utf-8")
    (folder / "table.py.txt").write_text(definition, "utf-8")
    _write_topics(folder / "topics.json.gz", topics)
    for kind, path in savepoints.items():
        (only,) = path.iterdir()
        assert only.name == SAVEPOINT_FILE, f"the state of {kind} is not in one file"
        (folder / f"{kind}.gz").write_bytes(gzip.compress(only.read_bytes(), mtime=0))


def _write_topics(file: Path, topics: KeptTopics) -> None:
    packed = {
        name: [
            partitions,
            [[r.partition, r.timestamp_ms, *map(_text, r[2:4]), _names(r)] for r in records],
        ]
        for name, (partitions, records) in topics.items()
    }
    file.write_bytes(gzip.compress(json.dumps(packed).encode(), mtime=0))


def _names(record: Record) -> list[str]:
    return [name for name, _ in record.headers]


def _read_topics(file: Path) -> KeptTopics:
    topics: KeptTopics = {}
    for name, (partitions, packed) in json.loads(gzip.decompress(file.read_bytes())).items():
        offsets = dict.fromkeys(range(partitions), 0)
        records = []
        for partition, timestamp_ms, key, value, headers in packed:
            given = tuple((header, b"") for header in headers)
            records.append(
                Record(
                    partition, offsets[partition], _bytes(key), _bytes(value), timestamp_ms, given
                )
            )
            offsets[partition] += 1
        topics[name] = partitions, records
    return topics


def _text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


def _event(fields: Mapping[str, Any]) -> Event:
    return Event(fields["key"], fields["ts"], fields["value"])


def _feedback(fields: Mapping[str, Any]) -> Feedback:
    text = fields["version"]
    version = None if text is None else Version(*map(int, text.split(".")))
    return Feedback(fields["key"], version, fields.get("error"), fields["ts"])
