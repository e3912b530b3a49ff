"""Table definitions of the tests, written as a user writes them, and their functions restated.

A function here and its restatement for the model are two texts on purpose: the one sees arrays in
a worker of the cluster, the other the model's points.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.reference.model import Points

_DEFINITION = '''
from freshet import *


class Digest(FeatureFunction):
    """Tells its whole window: each value, weighted by its place, and how far back it reaches."""

    def compute(self, window):
        values, times = window.values, window.timestamps
        if values[-1] in {bad!r}:
            raise ValueError(f"bad reading {{values[-1]:g}}")
        weighted = sum((i + 1) * value for i, value in enumerate(values))
        return [len(values), values[-1], weighted, (times[-1] - times[0]) / 1000]


class DigestTree(Digest):
    """The same as a tree instead of a vector."""

    def compute(self, window):
        digest = [float(number) for number in super().compute(window)]
        return {{"digest": digest, "newest": int(window.timestamps[-1]), "key": window.key}}


table = FeatureTable(
    name={name!r},
    function={function}(),
{fields}
)
'''


def write_definition(
    folder: Path,
    name: str,
    *,
    function: str = "Digest",
    bad_values: tuple[float, ...] = (),
    **fields: str,
) -> Path:
    """Writes a definition file.

    Args:
        folder: for the file.
        name: of the table.
        function: ``Digest`` or ``DigestTree``.
        bad_values: newest values on which the function raises.
        fields: of the table, as Python text.
    """
    lines = "\n".join(f"    {key}={text}," for key, text in fields.items())
    file = folder / f"{name}.py"
    file.write_text(
        _DEFINITION.format(name=name, function=function, fields=lines, bad=set(bad_values) or {}),
        encoding="utf-8",
    )
    return file


class DigestModel:
    """The functions above, for the model."""

    def __init__(self, *, tree: bool = False, bad_values: tuple[float, ...] = ()) -> None:
        self._tree = tree
        self._bad = bad_values

    def __call__(self, key: str, window: Points) -> Any:
        """A list of numbers that float32 holds exactly, or a tree."""
        newest_time, newest = window[-1]
        if newest in self._bad:
            raise ValueError(f"bad reading {newest:g}")
        weighted = 0.0
        for place, (_, value) in enumerate(window, 1):
            weighted += place * value
        digest = [float(len(window)), newest, weighted, (newest_time - window[0][0]) / 1000]
        return {"digest": digest, "newest": newest_time, "key": key} if self._tree else digest
