"""What every benchmark is given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Context:
    """How to run, and where to work."""

    quick: bool
    """Fewer rounds and smaller sizes: for trying a benchmark out, not for its figures."""

    scratch: Path
    """Folder of this run; removed at its end."""

    cache: Path
    """Folder that outlives runs (``.bench``)."""

    say: Callable[[str], None]
    """Shows progress."""

    @property
    def rounds(self) -> int:
        """How often everything is measured."""
        return 1 if self.quick else 5

    def folder(self, name: str) -> Path:
        """An empty folder in the scratch folder."""
        path = self.scratch / name
        path.mkdir(parents=True)
        return path
