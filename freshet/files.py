"""Files that commands write: locally, or in an object store."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from freshet.errors import FreshetError


def write_atomically(file: Path, content: bytes) -> None:
    """Writes a file so that a reader sees the old content or the new, never a part."""
    file.parent.mkdir(parents=True, exist_ok=True)
    descriptor, draft = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    try:
        with os.fdopen(descriptor, "wb") as out:
            out.write(content)
        Path(draft).chmod(0o644)
        Path(draft).replace(file)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise


def is_url(location: str) -> bool:
    """Whether a location is a URL, such as ``s3://bucket/folder``, and not a local path."""
    return "://" in location


def write_file(folder: str, name: str, content: bytes) -> str:
    """Writes a file into a folder; a local one is made when missing.

    Args:
        folder: a local path, or a URL that smart-open writes to.
        name: of the file.
        content: the bytes.

    Returns:
        The location of the file.

    Raises:
        FreshetError: it can't be written.
    """
    location = f"{folder.rstrip('/')}/{name}"
    try:
        if is_url(folder):
            import smart_open

            with smart_open.open(location, "wb") as file:
                file.write(content)
        else:
            write_atomically(Path(location), content)
    except Exception as error:
        raise FreshetError(f"{location} can't be written: {error}") from error
    return location
