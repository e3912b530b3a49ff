"""The definition of a feature table."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from freshet.durations import DurationLike, parse_duration_ms
from freshet.errors import ConfigError
from freshet.functions.base import FeatureFunction
from freshet.functions.channel import MAX_RESULT_BYTES
from freshet.table.checks import Problems
from freshet.table.parts import (
    MAX_BYTES,
    Budget,
    Duration,
    EventTimeStep,
    OnDemand,
    Points,
    Rate,
    Source,
    TimeShare,
    WindowExtent,
)
from freshet.table.policies import POLICIES as POLICIES
from freshet.table.policies import POLICY_NEEDS, Need

MAX_PARALLELISM = 1 << 15  # Flink's limit
MAX_NAME_LENGTH = 200
MAX_BUNDLE_KEYS = 1 << 16
MAX_KEEP_VERSIONS = 8

_RESERVED_NAME = "freshet"  # <prefix>freshet:tables is the registry of tables

_NAME = re.compile(rf"[A-Za-z0-9][A-Za-z0-9_.-]{{0,{MAX_NAME_LENGTH - 1}}}")
_REGION = re.compile(r"[A-Za-z0-9][\w.-]*:[A-Za-z0-9][\w.-]*", re.ASCII)


@dataclass(frozen=True, kw_only=True)
class FeatureTable:
    """A feature table: its source, window, feature function, policy, budget and promises.

    Checked as a whole when it is made, before anything starts. Durations are text such as "5m",
    "1h30m" or "250ms", or a ``timedelta``.

    Raises:
        ConfigError: with every problem, not only the first.
    """

    name: str
    """Name: letters, digits, '_', '-' and '.'; in the online store's keys and in topic names."""

    function: FeatureFunction
    """Computes a key's feature value from its window."""

    window: WindowExtent
    """How far back the raw window of a key reaches: ``Points`` or ``Duration``."""

    source: Source = field(default_factory=Source)
    """The topic of raw events, and the names of its fields."""

    feedback_topic: str | None = None
    """Topic of the models' feedback without the deployment's prefix; None: ``feedback.<name>``."""

    min_points: int | None = None
    """A key with fewer points is not computed yet; None: what the function needs."""

    policy: str = "regret-proportional"
    """Which key is computed next, one of ``POLICIES``."""

    policy_seed: int = 0
    """Another seed draws other lots; only ``random`` has chance in it."""

    default_regret: float = 1e-6
    """Regret of a pending event without feedback, so that no key starves (RALF §2.4.3)."""

    max_regret: float = 1e12
    """Cap of a key's regret, so that no key holds all others back."""

    missing_regret: float | None = None
    """Regret of having no value, to which what is fed back on missing values is added; None:
    ``max_regret``, so that a first value comes before any update."""

    keep_versions: int = 1
    """Versions of a value in the online store, the newest included, from 1 to 8: a model can then
    serve whichever of them predicts best."""

    budget: Budget = field(default_factory=lambda: TimeShare(0.5))
    """How much may be computed: ``TimeShare``, ``Rate`` or ``EventTimeStep``."""

    on_demand: OnDemand | None = None
    """Computes a key only for those who read it, instead of by the policy; None: unasked."""

    freshness_slo: DurationLike = "5m"
    """How old a value may be in a region before the objective is missed."""

    regions: tuple[str, ...] = ("local:home",)
    """Regions that serve the table, ``provider:region``; any sequence of them is taken."""

    priority_weight: float = 1.0
    """How much the table's models matter beside others': a factor of its changes' priority on a
    link that is behind; 0: they are never sent early."""

    ttl: DurationLike | None = None
    """Values with an older event time are read as expired; None: never."""

    out_of_orderness: DurationLike = "0s"
    """How late an event may be within its partition without being counted as late."""

    idle_timeout: DurationLike | None = "5s"
    """After so long without input a partition no longer holds event time back; None: it does for
    ever, which a deterministic replay needs."""

    max_future: DurationLike = "1d"
    """Events further ahead of the wall clock go to dead letters: one could expire all others."""

    function_timeout: DurationLike = "30s"
    """A computation of one key that takes longer is cut, and the key goes to dead letters."""

    bundle_target: DurationLike = "50ms"
    """Cheap functions are computed for several keys at once, together about this long."""

    bundle_max_keys: int = 256
    """Most keys computed at once."""

    max_value_bytes: int = 1 << 20
    """Larger values go to dead letters, bytes."""

    parallelism: int = 1
    """Subtasks of the job."""

    max_parallelism: int = 128
    """Key groups: the most subtasks that the job can be rescaled to; fixed for its life."""

    origin: int = 1
    """Id of the writer in versions, 0 to 65535; different for each job that writes the table."""

    def __post_init__(self) -> None:
        if isinstance(self.regions, list):
            object.__setattr__(self, "regions", tuple(self.regions))
        problems = Problems()
        self._check_types(problems)
        self._check_fields(problems)
        self._check_with_function(problems)
        if problems:
            raise ConfigError(problems, f"table definition {self.name!r}")

    @property
    def ttl_ms(self) -> int | None:
        """Time to live, milliseconds."""
        return None if self.ttl is None else parse_duration_ms(self.ttl)

    def effective_min_points(self) -> int:
        """``min_points``, or what the function needs."""
        if self.min_points is not None:
            return self.min_points
        return self.function.min_points(self.window)

    def to_dict(self, topic_prefix: str = "") -> dict[str, Any]:
        """The definition as JSON types, durations in milliseconds, as the Java side reads it.

        Args:
            topic_prefix: goes before the name of every topic.
        """
        source = self.source
        return {
            "table": self.name,
            "origin": self.origin,
            "source": {
                "topic": topic_prefix + (source.topic or f"events.{self.name}"),
                "key": source.key,
                "timestamp": source.timestamp,
                "value": source.value,
                "id": source.id,
                "kind": source.kind,
                "max_event_bytes": source.max_event_bytes,
            },
            "feedback_topic": topic_prefix + (self.feedback_topic or f"feedback.{self.name}"),
            "changes_topic": f"{topic_prefix}changes.{self.name}",
            "dead_letters_topic": f"{topic_prefix}dead-letters.{self.name}",
            "progress_topic": f"{topic_prefix}progress",
            "window": self.window.to_dict(),
            "min_points": self.effective_min_points(),
            "policy": self.policy,
            "policy_seed": self.policy_seed,
            "default_regret": float(self.default_regret),
            "max_regret": float(self.max_regret),
            "missing_regret": None if self.missing_regret is None else float(self.missing_regret),
            "keep_versions": self.keep_versions,
            "on_demand": None if self.on_demand is None else self.on_demand.to_dict(),
            "budget": self.budget.to_dict(),
            "freshness_slo_ms": parse_duration_ms(self.freshness_slo),
            "regions": list(self.regions),
            "priority_weight": float(self.priority_weight),
            "ttl_ms": self.ttl_ms,
            "out_of_orderness_ms": parse_duration_ms(self.out_of_orderness),
            "idle_timeout_ms": (
                None if self.idle_timeout is None else parse_duration_ms(self.idle_timeout)
            ),
            "max_future_ms": parse_duration_ms(self.max_future),
            "function_timeout_ms": parse_duration_ms(self.function_timeout),
            "bundle_target_ms": parse_duration_ms(self.bundle_target),
            "bundle_max_keys": self.bundle_max_keys,
            "max_value_bytes": self.max_value_bytes,
            "parallelism": self.parallelism,
            "max_parallelism": self.max_parallelism,
        }

    def _check_types(self, problems: Problems) -> None:
        if isinstance(self.function, type) and issubclass(self.function, FeatureFunction):
            name = self.function.__name__
            problems.append(f"function is the class {name}; pass an instance, such as {name}()")
        elif not isinstance(self.function, FeatureFunction):
            problems.append(
                f"function must be a FeatureFunction, not {self.function!r}; derive its class from "
                "freshet.FeatureFunction"
            )
        for name, types, usage in (
            ("window", (Points, Duration), "Points(864) or Duration('3d')"),
            (
                "budget",
                (TimeShare, Rate, EventTimeStep),
                "TimeShare(0.5), Rate(10) or EventTimeStep(updates=2, step='1h')",
            ),
            ("source", (Source,), "Source(topic=..., key=..., ...)"),
        ):
            part = getattr(self, name)
            if isinstance(part, types):
                part.check(problems)
            else:
                problems.append(f"{name} must be {usage}, not {part!r}")
        if isinstance(self.on_demand, OnDemand):
            self.on_demand.check(problems)
        elif self.on_demand is not None:
            problems.append(
                f"on_demand must be OnDemand(max_staleness='5m') or None, not {self.on_demand!r}"
            )

    def _check_fields(self, problems: Problems) -> None:
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name):
            problems.append(
                f"name must be up to {MAX_NAME_LENGTH} letters, digits, '_', '-' and '.', starting "
                f"with a letter or digit, not {self.name!r}"
            )
        if self.name == _RESERVED_NAME:
            problems.append(
                f"name {_RESERVED_NAME!r} is taken by Freshet's own keys; choose another"
            )
        if self.feedback_topic is not None:
            problems.topic("feedback_topic", self.feedback_topic)
        self._check_topics_differ(problems)
        self._check_policy(problems)
        problems.number("default_regret", self.default_regret, lambda v: v > 0, "above 0")
        problems.number("max_regret", self.max_regret, lambda v: v > 0, "above 0")
        if self.missing_regret is not None:
            problems.number("missing_regret", self.missing_regret, lambda v: v >= 0, "at least 0")
        problems.number("priority_weight", self.priority_weight, lambda v: v >= 0, "at least 0")
        if not problems and self.default_regret > self.max_regret:
            problems.append(
                f"default_regret {self.default_regret:g} is above max_regret {self.max_regret:g}"
            )
        self._check_durations(problems)
        self._check_regions(problems)
        problems.integer("bundle_max_keys", self.bundle_max_keys, 1, MAX_BUNDLE_KEYS)
        problems.integer("max_value_bytes", self.max_value_bytes, 1, MAX_RESULT_BYTES)
        problems.integer("max_parallelism", self.max_parallelism, 1, MAX_PARALLELISM)
        most = self.max_parallelism if isinstance(self.max_parallelism, int) else MAX_PARALLELISM
        problems.integer("parallelism", self.parallelism, 1, max(1, min(most, MAX_PARALLELISM)))
        problems.integer("origin", self.origin, 0, 0xFFFF)
        if self.min_points is not None:
            problems.integer("min_points", self.min_points, 1, MAX_BYTES)

    def _check_policy(self, problems: Problems) -> None:
        problems.one_of("policy", self.policy, POLICIES)
        problems.integer("policy_seed", self.policy_seed, -(1 << 63), (1 << 63) - 1)
        problems.integer("keep_versions", self.keep_versions, 1, MAX_KEEP_VERSIONS)
        needs = POLICY_NEEDS.get(self.policy, ()) if isinstance(self.policy, str) else ()
        if Need.KEPT_VERSIONS in needs and self.keep_versions == 1:
            problems.append(
                f"policy {self.policy!r} learns from feedback on several versions of a value, and "
                "keep_versions is 1; set it to 2 or more"
            )

        if self.policy == "fifo" and self.on_demand is not None:
            problems.append(
                "policy 'fifo' computes every event, and on_demand only what is asked for; leave "
                "one of them out"
            )

    def _check_durations(self, problems: Problems) -> None:
        for name in ("freshness_slo", "function_timeout", "bundle_target"):
            problems.duration(name, getattr(self, name), 1)
        for name in ("out_of_orderness", "max_future"):
            problems.duration(name, getattr(self, name), 0)
        for name in ("ttl", "idle_timeout"):
            if getattr(self, name) is not None:
                problems.duration(name, getattr(self, name), 1)

    def _check_regions(self, problems: Problems) -> None:
        if not isinstance(self.regions, tuple) or not self.regions:
            problems.append(
                f"regions must be a list with at least one provider:region, not {self.regions!r}"
            )
            return
        for region in self.regions:
            if not isinstance(region, str) or not _REGION.fullmatch(region):
                problems.append(
                    f"regions has {region!r}; write provider:region, such as 'aws:eu-west-1'"
                )
        if len(set(map(str, self.regions))) < len(self.regions):
            problems.append(f"regions names a region twice: {', '.join(map(str, self.regions))}")

    def _check_topics_differ(self, problems: Problems) -> None:
        topics = {
            "source.topic": getattr(self.source, "topic", None) or f"events.{self.name}",
            "feedback_topic": self.feedback_topic or f"feedback.{self.name}",
            "the topic of changes": f"changes.{self.name}",
            "the topic of dead letters": f"dead-letters.{self.name}",
            "the topic of progress": "progress",
        }
        seen: dict[object, str] = {}
        for role, topic in topics.items():
            if topic in seen:
                problems.append(f"{seen[topic]} and {role} are one topic, {topic!r}; rename one")
            seen.setdefault(topic, role)

    def _check_with_function(self, problems: Problems) -> None:
        """The function's own checks, which may presume that the other fields make sense."""
        if not isinstance(self.function, FeatureFunction):
            return
        earlier = len(problems)
        try:
            found = self.function.validate(self)
            needed = self.effective_min_points()
        except Exception as e:
            if not earlier:
                name = type(self.function).__name__
                problems.append(f"function: {name} can't check the table: {e!r}")
            return
        problems += [problem for problem in found if problem not in problems]
        if len(problems) > earlier:
            return
        problems.integer("min_points", needed, 1, MAX_BYTES)
        if isinstance(self.window, Points) and not problems and needed > self.window.count:
            problems.append(
                f"min_points is {needed}, and the window holds {self.window.count} points, so that "
                "no key would ever be computed; use a longer window"
            )
