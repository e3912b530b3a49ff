"""Names of variants and arms."""

from __future__ import annotations

import pytest

from freshet.errors import ConfigError
from freshet.evaluation.variants import NONE, UNLIMITED, Arm, Variant, parse_variant


@pytest.mark.parametrize(
    ("text", "variant"),
    [
        ("round-robin", Variant("round-robin")),
        ("regret-proportional+keep-4", Variant("regret-proportional", 4)),
        ("fifo+keep-1", Variant("fifo", 1)),
    ],
)
def test_a_name_is_parsed(text: str, variant: Variant) -> None:
    assert parse_variant(text) == variant


def test_a_name_is_printed_as_it_is_parsed() -> None:
    for variant in (Variant("round-robin"), Variant("regret-proportional", 3)):
        assert parse_variant(str(variant)) == variant


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("regret-proportionl", "did you mean 'regret-proportional'"),
        ("round-robin+keep-0", "not 0"),
        ("round-robin+keep-99", "not 99"),
        (UNLIMITED, "always included"),
        (NONE, "always included"),
        ("round-robin+keep-two", "unknown"),
    ],
)
def test_a_wrong_name_says_what_is_wrong(text: str, hint: str) -> None:
    with pytest.raises(ConfigError, match=hint):
        parse_variant(text)


def test_bounds_have_no_budget_in_their_name() -> None:
    assert str(Arm(Variant(UNLIMITED), float("inf"))) == UNLIMITED
    assert str(Arm(Variant("round-robin", 2), 0.05)) == "round-robin+keep-2 at 0.05"
