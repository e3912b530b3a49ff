"""Programs that tests need and that are no Python packages: of ``make tools``, or of the PATH."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from freshet.stack.layout import CHECKOUT

TOOLS = CHECKOUT / ".tools"


def tool(name: str, folder: str) -> Path:
    """The program; a test that needs it is skipped where it is missing, with the reason.

    Args:
        name: of the program.
        folder: of `tools/` that it is built from.
    """
    found = shutil.which(name, path=TOOLS / "bin") or shutil.which(name)
    if found is not None:
        return Path(found)
    missing = TOOLS / f"{folder}.missing"
    why = missing.read_text("utf-8").strip() if missing.exists() else "run 'make tools'"
    pytest.skip(f"{name} is neither in .tools/bin nor on the PATH: {why}")
