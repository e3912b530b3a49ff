"""What is compared: a scheduling policy, and how many versions of a value are kept."""

from __future__ import annotations

import re
from dataclasses import dataclass

from freshet.errors import ConfigError
from freshet.table.checks import suggestion
from freshet.table.definition import MAX_KEEP_VERSIONS, POLICIES

UNLIMITED = "unlimited"
"""Every key with new data is computed in every step: what a budget saves is measured from it."""

NONE = "none"
"""Every key is computed once, when the replay begins, and never again."""

_KEEP = re.compile(r"(?P<policy>.+)\+keep-(?P<keep>\d+)")


@dataclass(frozen=True, order=True)
class Variant:
    """A policy, as it is named on the command line: ``round-robin``, ``round-robin+keep-4``."""

    policy: str
    keep: int = 1
    """Versions of a value that the store keeps; the model serves the one that predicts best."""

    def __str__(self) -> str:
        return self.policy if self.keep == 1 else f"{self.policy}+keep-{self.keep}"


@dataclass(frozen=True)
class Arm:
    """A variant with a budget: one table of the evaluation, and one row of its result."""

    variant: Variant
    budget: float
    """Updates in a step, as a share of the workload's unit (see ``Workload.updates_per_step``)."""

    @property
    def is_bound(self) -> bool:
        """Whether it is one of those that are always included, which have no budget."""
        return self.variant.policy in (UNLIMITED, NONE)

    def __str__(self) -> str:
        return str(self.variant) if self.is_bound else f"{self.variant} at {self.budget:g}"


def parse_variant(text: str) -> Variant:
    """The variant of this name.

    Raises:
        ConfigError: the policy is unknown, or so many versions can't be kept.
    """
    match = _KEEP.fullmatch(text)
    policy, keep = (match["policy"], int(match["keep"])) if match else (text, 1)
    if policy in (UNLIMITED, NONE):
        raise ConfigError([f"{policy} is always included; leave it out"], "--policy")
    if policy not in POLICIES:
        hint = suggestion(policy, list(POLICIES))
        raise ConfigError([f"policy {policy!r} is unknown{hint}"], "--policy")
    if not 1 <= keep <= MAX_KEEP_VERSIONS:
        raise ConfigError(
            [f"{text}: 1 to {MAX_KEEP_VERSIONS} versions can be kept, not {keep}"], "--policy"
        )
    return Variant(policy, keep)
