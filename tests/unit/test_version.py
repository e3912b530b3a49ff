"""Goal: versions order and print as the contract says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.version import NO_VERSION, Version

VERSIONS = st.builds(Version, st.integers(0, 2**63 - 1), st.integers(0, 0xFFFF))


@given(VERSIONS)
def test_text_round_trips(version: Version) -> None:
    assert Version.parse(str(version)) == version
    assert version >= NO_VERSION


def test_order_is_by_timestamp_then_origin() -> None:
    versions = [Version(10, 0), Version(2, 1), Version(1, 2), Version(2, 0)]
    assert list(map(str, sorted(versions))) == ["1.2", "2.0", "2.1", "10.0"]


@pytest.mark.parametrize(
    "text", ["", "1", "1.", ".1", "1.65536", "-1.0", "1.0.0", "a.b", "²1.0", f"{2**63}.0"]
)
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="send back the version"):
        Version.parse(text)
