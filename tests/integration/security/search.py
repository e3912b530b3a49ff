"""Looks for secrets in all that a deployment leaves, in every notation they may have there."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from freshet.errors import StackError
from freshet.stack.flink_rest import FlinkRest
from freshet.stack.processes import processes_of_stack

_ARCHIVE = b"PK\x03\x04"
"""How a zip begins; each job leaves copies of the jar."""

_OF_CLUSTER = (
    "/config",
    "/overview",
    "/jobs/overview",
    "/jobmanager/config",
    "/jobmanager/environment",
    "/jobmanager/metrics",
    "/taskmanagers",
    "/jars",
)
_OF_JOB = (
    "",
    "/config",
    "/plan",
    "/exceptions",
    "/accumulators",
    "/checkpoints",
    "/checkpoints/config",
    "/jobmanager/config",
    "/jobmanager/environment",
)
_OF_VERTEX = ("", "/taskmanagers", "/subtasktimes", "/accumulators", "/subtasks/accumulators")


def files_below(folder: Path, but: Iterable[Path]) -> dict[str, bytes]:
    """Contents of all files but archives, by path: what is compressed cannot be found.

    Args:
        folder: where to look.
        but: folders to leave out.
    """
    left_out = tuple(but)
    return {
        str(file): file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.is_file()
        and not any(file.is_relative_to(each) for each in left_out)
        and not _is_archive(file)
    }


def _is_archive(file: Path) -> bool:
    with file.open("rb") as opened:
        return opened.read(len(_ARCHIVE)) == _ARCHIVE


def rest_answers(rest: FlinkRest) -> dict[str, bytes]:
    """What Flink's REST interface tells of the cluster and of each job, by path."""
    answers = {}
    for path in _paths(rest):
        try:
            answers[f"REST {path}"] = json.dumps(rest.get(path), ensure_ascii=False).encode()
        except StackError as error:
            # Some are not there for every kind of cluster; the error is an answer.
            answers[f"REST {path}"] = str(error).encode()
    return answers


def _paths(rest: FlinkRest) -> Iterator[str]:
    yield from _OF_CLUSTER
    for name in rest.task_managers():
        yield f"/taskmanagers/{name}"
    for job in rest.jobs():
        for end in _OF_JOB:
            yield f"/jobs/{job.id}{end}"
        for vertex in rest.get(f"/jobs/{job.id}")["vertices"]:
            for end in _OF_VERTEX:
                yield f"/jobs/{job.id}/vertices/{vertex['id']}{end}"


def command_lines(stack_id: str) -> dict[str, bytes]:
    """Arguments of a stack's processes, which everybody on the machine can read."""
    files = (Path(f"/proc/{each.pid}/cmdline") for each in processes_of_stack(stack_id))
    return {str(file): file.read_bytes() for file in files if file.exists()}


def found(places: Mapping[str, bytes], texts: Mapping[str, str]) -> dict[str, list[str]]:
    """Places that have one of the texts, as it is or in base64, and which ones.

    Args:
        places: what there is to search, by where it is.
        texts: letters and digits, which no notation escapes, by name.
    """
    searched = {name: list(_notations(text)) for name, text in texts.items()}
    hits = {
        place: [
            name for name, notations in searched.items() if any(n in content for n in notations)
        ]
        for place, content in places.items()
    }
    return {place: names for place, names in hits.items() if names}


def _notations(text: str) -> Iterator[bytes]:
    raw = text.encode()
    yield raw
    # Wherever it begins within the groups of three bytes that base64 encodes.
    for before in range(3):
        coded = base64.b64encode(bytes(before) + raw).decode().rstrip("=")
        own = coded[-(-before * 8 // 6) : -1]
        yield own.encode()
