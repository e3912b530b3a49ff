"""The policies are the same on both sides, and get what they can't do without."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from freshet.errors import ConfigError
from freshet.functions import Aggregate
from freshet.table import POLICIES, POLICY_NEEDS, FeatureTable, Need, Points, definition

SOURCES = Path(__file__).parents[3] / "operators/src/main/java/dev/freshet/operators/scheduling"


def _policies_in_java() -> dict[str, frozenset[Need]]:
    texts = {source.stem: source.read_text("utf-8") for source in SOURCES.glob("*Policy.java")}
    found = {}
    for text in texts.values():
        name = re.search(r'String NAME = "(.+?)"', text)
        if name:
            found[name[1]] = _needs(text, texts)
    return found


def _needs(text: str, texts: dict[str, str]) -> frozenset[Need]:
    """What a policy's source says it needs, or else that of its interface."""
    stated = re.search(r"EnumSet\.of\((.+?)\)", text, re.DOTALL)
    if stated:
        return frozenset(Need[need] for need in re.findall(r"Need\.(\w+)", stated[1]))
    parent = re.search(r" implements (\w+)", text)
    return _needs(texts[parent[1]], texts) if parent else frozenset()


def test_names_and_needs_are_those_of_the_job() -> None:
    assert _policies_in_java() == POLICY_NEEDS


def test_every_policy_makes_a_table() -> None:
    for policy in POLICIES:
        table = FeatureTable(name="t", function=Aggregate(), window=Points(10), policy=policy)
        assert table.to_dict()["policy"] == policy


def test_a_policy_that_needs_several_versions_is_refused_with_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    needs = {**POLICY_NEEDS, "fifo": frozenset({Need.KEPT_VERSIONS})}
    monkeypatch.setattr(definition, "POLICY_NEEDS", needs)
    with pytest.raises(ConfigError, match="keep_versions is 1; set it to 2 or more"):
        FeatureTable(name="t", function=Aggregate(), window=Points(10), policy="fifo")
    FeatureTable(name="t", function=Aggregate(), window=Points(10), policy="fifo", keep_versions=2)
