"""Matrices kept on disk, for what takes long to make: ``$FRESHET_CACHE_DIR/matrices``.

A file is one line of JSON and the numbers::

    {"identity": {...}, "shape": [289, 864], "sha256": "..."}\\n
    float64, little-endian, row by row

The checksum is that of the identity, the shape and the numbers. A file that is damaged, of another
identity or can't be read counts as missing; one that can't be written is left out. The cache is
never the only copy of something and never a reason to fail.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

MAX_CACHE_BYTES = 512 << 20
"""The files that were used longest ago are removed beyond this."""

_SUFFIX = ".matrix"
_NUMBERS = np.dtype("<f8")

_log = logging.getLogger(__name__)

Identity = Mapping[str, str | int]
"""All that determines the numbers, versions of libraries included."""


def cache_folder() -> Path:
    """``$FRESHET_CACHE_DIR``, else ``$XDG_CACHE_HOME/freshet``, else ``~/.cache/freshet``.

    Raises:
        RuntimeError: neither is set, and the user has no home.
    """
    if own := os.environ.get("FRESHET_CACHE_DIR"):
        return Path(own)
    shared = os.environ.get("XDG_CACHE_HOME", "")
    # The standard has relative paths ignored.
    base = Path(shared) if Path(shared).is_absolute() else Path.home() / ".cache"
    return base / "freshet"


def load_matrix(
    name: str, identity: Identity, shape: tuple[int, int]
) -> npt.NDArray[np.float64] | None:
    """The matrix of an identity; None if there is none that is whole.

    Args:
        name: how its file's name begins.
        identity: as it was stored.
        shape: rows and columns that it must have.
    """
    try:
        path = _path(name, identity)
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    except (OSError, RuntimeError) as e:
        _log.warning("the cached matrix %s can't be read, and is made anew: %s", name, e)
        return None
    head, _, numbers = content.partition(b"\n")
    if head != _head(identity, shape, numbers):
        _log.warning("the cached matrix %s is damaged, and is made anew", path)
        return None
    with contextlib.suppress(OSError):
        os.utime(path)  # used just now
    return np.frombuffer(numbers, _NUMBERS).reshape(shape).astype(np.float64)


def store_matrix(name: str, identity: Identity, matrix: npt.NDArray[np.float64]) -> None:
    """Keeps a matrix; whoever reads meanwhile finds the whole file or none."""
    numbers = matrix.astype(_NUMBERS).tobytes()
    try:
        path = _path(name, identity)
        path.parent.mkdir(parents=True, exist_ok=True)
        _write_whole(path, _head(identity, matrix.shape, numbers) + b"\n" + numbers)
        _remove_oldest(path.parent, MAX_CACHE_BYTES)
    except (OSError, RuntimeError) as e:
        _log.warning(
            "the matrix %s can't be kept on disk, so that each process makes it anew: %s; set "
            "FRESHET_CACHE_DIR to a folder that can be written",
            name,
            e,
        )


def _path(name: str, identity: Identity) -> Path:
    digest = hashlib.sha256(_canonical(dict(identity))).hexdigest()[:16]
    return cache_folder() / "matrices" / f"{name}-{digest}{_SUFFIX}"


def _head(identity: Identity, shape: tuple[int, ...], numbers: bytes) -> bytes:
    about: dict[str, object] = {"identity": dict(identity), "shape": list(shape)}
    digest = hashlib.sha256(_canonical(about) + numbers).hexdigest()
    return _canonical({**about, "sha256": digest})


def _canonical(value: object) -> bytes:
    return json.dumps(value, sort_keys=True).encode()


def _write_whole(path: Path, content: bytes) -> None:
    """Writes beside the file and renames, so that the file is never half there."""
    fd, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(content)
        Path(name).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise


def _remove_oldest(folder: Path, most_bytes: int) -> None:
    """Removes the files that were used longest ago; others may do so at the same time."""
    files = []
    for path in folder.glob(f"*{_SUFFIX}"):
        with contextlib.suppress(FileNotFoundError):
            files.append((path.stat(), path))
    files.sort(key=lambda file: file[0].st_mtime, reverse=True)
    total = 0
    for status, path in files:
        total += status.st_size
        if total > most_bytes:
            path.unlink(missing_ok=True)
