"""The chunk that tests/data/chunks describes, which both languages have written.

``python -m tests.unit.golden_chunks`` writes Python's anew; Java's test writes Java's.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from freshet.chunks import Chunk, ChunkChange, Coverage, Hop, encode_chunk
from freshet.version import Version

FOLDER = Path(__file__).resolve().parents[1] / "data" / "chunks"


def content() -> Chunk:
    """What content.json says."""
    said = json.loads((FOLDER / "content.json").read_text(encoding="utf-8"))
    return Chunk(
        **{
            **said,
            "route": _hop(said["route"]),
            "coverage": tuple(Coverage(**covered) for covered in said["coverage"]),
            "changes": tuple(_change(change) for change in said["changes"]),
        }
    )


def _hop(said: dict[str, Any]) -> Hop:
    return Hop(**{**said, "children": tuple(_hop(child) for child in said["children"])})


def _change(said: dict[str, Any]) -> ChunkChange:
    return ChunkChange(
        **{
            **said,
            "version": Version.parse(said["version"]),
            "value": bytes.fromhex(said["value"]),
        }
    )


if __name__ == "__main__":
    (FOLDER / "python.chunk").write_bytes(encode_chunk(content()))
