"""Plans for streams: so many GB per second, each chunk in all regions within a freshness bound.

A stream of rate r is a batch of 3600 r GB with a deadline of an hour, so that the planner's dollars
are dollars per hour; links and VMs are loaded up to a share of what they can do, so that queues
stay short. Delays are those of ``delays``: they count from a chunk's being complete at the source
to its being complete at a destination, on average. Filling a chunk takes time of its own.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from freshet.errors import ConfigError
from freshet.planner.delays import Delays
from freshet.planner.errors import NoPlanError
from freshet.planner.fresh_trees import FreshTrees
from freshet.planner.mixes import trees_of
from freshet.planner.optimal.planner import solve
from freshet.planner.plan import Plan, Stripe
from freshet.planner.problem import Floats, Network, Problem
from freshet.planner.trees import Tree

SECONDS_PER_HOUR = 3600.0
DEFAULT_CHUNK_MB = 1.0
"""What Kafka takes as one message by default."""

DEFAULT_LOAD = 0.8
BITS_PER_MB = 8e6


@dataclass(frozen=True, eq=False)
class Stream:
    """A stream that is to get from one region to others, fresh and as cheaply as possible.

    Args:
        network: that the data may use.
        source: region where chunks are made.
        destinations: regions that need all of them.
        gb_per_s: GB (10^9 bytes) per second.
        freshness_s: seconds until every destination has a chunk, at most; None for no bound.
        freshness_of_s: the same for single destinations, in place of that.
        chunk_mb: MB (10^6 bytes) of a chunk.
        latency_s: seconds that a hop takes beside the transmission: for all links, or of each
            [n, n] from row to column.
        load: largest share of a link's bandwidth and of a VM's limits that is used; more than 0,
            less than 1. Chunks wait longer for each other, the nearer it is to 1.
        stripes: number of equal parts of the stream, each sent along one tree; None for parts of
            any size.
    """

    network: Network
    source: str
    destinations: tuple[str, ...]
    gb_per_s: float
    freshness_s: float | None = None
    freshness_of_s: Mapping[str, float] = field(default_factory=dict)
    chunk_mb: float = DEFAULT_CHUNK_MB
    latency_s: float | Floats = 0.0
    load: float = DEFAULT_LOAD
    stripes: int | None = None

    def __post_init__(self) -> None:
        """Rejects what can't be planned.

        Raises:
            ConfigError: holds every problem.
        """
        object.__setattr__(self, "destinations", tuple(self.destinations))
        problems = [
            *self._number_problems(),
            *self._freshness_problems(),
            *self._latency_problems(),
        ]
        try:
            self._batch(1.0)
        except ConfigError as error:
            problems = [*error.problems, *problems]
        if problems:
            raise ConfigError(problems, "stream")

    def _number_problems(self) -> list[str]:
        numbers = {"gb_per_s": self.gb_per_s, "chunk_mb": self.chunk_mb}
        if self.freshness_s is not None:
            numbers["freshness_s"] = self.freshness_s
        numbers |= {f"freshness_of_s[{key!r}]": bound for key, bound in self.freshness_of_s.items()}
        problems = [
            f"{name} must be more than 0, not {value!r}"
            for name, value in numbers.items()
            if not (math.isfinite(value) and value > 0)
        ]
        if not 0 < self.load < 1:
            problems.append(f"load must be more than 0 and less than 1, not {self.load!r}")
        return problems

    def _freshness_problems(self) -> list[str]:
        problems = [
            f"freshness_of_s has {region!r}, which is no destination"
            for region in self.freshness_of_s
            if region not in self.destinations
        ]
        if self.freshness_of_s and self.freshness_s is None:
            problems.append("freshness_of_s needs freshness_s, for the other destinations")
        return problems

    def _latency_problems(self) -> list[str]:
        n = len(self.network.regions)
        latency = np.asarray(self.latency_s, np.float64)
        if latency.shape not in ((), (n, n)):
            return [
                f"latency_s has the shape {latency.shape}; give one number, or {(n, n)} for "
                f"{n} regions"
            ]
        if not (np.isfinite(latency) & (latency >= 0)).all():
            return ["latency_s must be finite and not negative everywhere"]
        return []

    @cached_property
    def problem(self) -> Problem:
        """The stream as a batch: an hour of it within an hour, on what may be loaded."""
        network, load = self.network, self.load
        loaded = replace(
            network,
            bandwidth_bps=network.bandwidth_bps * load,
            limits=tuple(
                replace(
                    limits,
                    egress_bps=limits.egress_bps * load,
                    ingress_bps=limits.ingress_bps * load,
                )
                for limits in network.limits
            ),
        )
        return replace(self._batch(self.gb_per_s), network=loaded)

    @cached_property
    def delays(self) -> Delays:
        """The delays of its chunks."""
        shape = self.network.bandwidth_bps.shape
        latency = np.broadcast_to(np.asarray(self.latency_s, np.float64), shape)
        return Delays(self.network, self.chunk_mb * BITS_PER_MB, latency, self.load)

    @cached_property
    def bounds_s(self) -> tuple[float, ...] | None:
        """Until a destination has a chunk, of each of the problem's terminals; None for none."""
        if self.freshness_s is None:
            return None
        regions = (self.network.regions[terminal] for terminal in self.problem.terminals)
        return tuple(self.freshness_of_s.get(region, self.freshness_s) for region in regions)

    def fresh_trees(self) -> FreshTrees:
        """The search for trees that are in time."""
        return FreshTrees(self.problem, self.delays, self.bounds_s)

    def least_delays_s(self) -> dict[str, float]:
        """The smallest possible delay of each destination; none if one can't be reached."""
        freshest, problem = self.fresh_trees().freshest, self.problem
        if freshest is None:
            return {}
        arrivals = self.delays.arrivals(freshest, problem.root)
        return {
            self.network.regions[terminal]: arrivals[terminal] for terminal in problem.terminals
        }

    def _batch(self, gb_per_s: float) -> Problem:
        return Problem(
            self.network,
            self.source,
            self.destinations,
            volume_gb=gb_per_s * SECONDS_PER_HOUR,
            deadline_s=SECONDS_PER_HOUR,
            stripes=self.stripes,
        )


@dataclass(frozen=True)
class Path:
    """How chunks of one stripe come to one destination."""

    stripe: int
    """Position among the plan's stripes."""

    destination: str
    regions: tuple[str, ...]
    """From the source to the destination."""

    delay_s: float
    """From a chunk's being complete at the source to its being complete here, on average."""


@dataclass(frozen=True)
class StreamCost:
    """What a running plan costs, in $ per hour."""

    egress_usd_per_h: float
    """For data sent between regions."""

    instance_usd_per_h: float
    """For VMs."""

    total_usd_per_h: float
    lower_bound_usd_per_h: float
    """No plan for the same stream costs less."""

    gap: float
    """(total - lower bound) / total."""


@dataclass(frozen=True)
class StreamPlan:
    """A plan that runs until it is replaced."""

    source: str
    destinations: tuple[str, ...]
    gb_per_s: float
    freshness_s: float | None
    """The bound that was asked for, where a destination has none of its own."""

    stripes: tuple[Stripe, ...]
    vms: Mapping[str, int]
    """VMs in each region that is used."""

    cost: StreamCost
    paths: tuple[Path, ...]
    """Of every stripe to every destination."""

    predicted_delay_s: float
    """Of the slowest path."""

    capacity_gb_per_s: float
    """Rate at which a link or a VM reaches the load that is allowed."""

    algorithm: str
    solve_time_s: float

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON types."""
        data = asdict(replace(self, vms=dict(self.vms)))
        data["destinations"] = list(self.destinations)
        data["stripes"] = [stripe.to_dict() for stripe in self.stripes]
        data["paths"] = [asdict(path) | {"regions": list(path.regions)} for path in self.paths]
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> StreamPlan:
        """Reads what ``to_dict`` gave.

        Raises:
            KeyError, TypeError, ValueError: it is no plan.
        """
        freshness = data["freshness_s"]
        return cls(
            source=data["source"],
            destinations=tuple(data["destinations"]),
            gb_per_s=float(data["gb_per_s"]),
            freshness_s=None if freshness is None else float(freshness),
            stripes=tuple(Stripe.from_dict(stripe) for stripe in data["stripes"]),
            vms={region: int(count) for region, count in data["vms"].items()},
            cost=StreamCost(**{name: float(value) for name, value in data["cost"].items()}),
            paths=tuple(
                Path(
                    int(path["stripe"]),
                    path["destination"],
                    tuple(path["regions"]),
                    float(path["delay_s"]),
                )
                for path in data["paths"]
            ),
            predicted_delay_s=float(data["predicted_delay_s"]),
            capacity_gb_per_s=float(data["capacity_gb_per_s"]),
            algorithm=data["algorithm"],
            solve_time_s=float(data["solve_time_s"]),
        )

    def to_json(self) -> str:
        """The plan as JSON."""
        return json.dumps(self.to_dict(), indent=2) + "\n"


def plan_stream(stream: Stream, *, trees: Iterable[Tree] = ()) -> StreamPlan:
    """Finds the cheapest running plan, and proves how close it is to the best.

    Args:
        stream: to plan for.
        trees: that are likely to be good, such as those of an earlier plan; late ones are left out.

    Raises:
        NoPlanError: a destination can't be reached, not so fast, or not at this rate; ``fastest_s``
            is the smallest possible delay where freshness is the reason.
    """
    started = time.perf_counter()
    pricing = stream.fresh_trees()
    check_freshness(stream, pricing)
    known = [tree for tree in trees if pricing.allows(tree)]
    try:
        plan = solve(stream.problem, pricing=pricing, trees=known)
    except NoPlanError as error:
        raise too_much(stream, error) from error
    return stream_plan_of(stream, plan, started=started)


def stream_plan_of(stream: Stream, plan: Plan, *, started: float) -> StreamPlan:
    """Describes a plan for ``stream.problem`` as one for the stream.

    Args:
        stream: that it is for.
        plan: of an hour of it.
        started: ``time.perf_counter()`` when the search began.
    """
    cost, paths = plan.cost, _paths(stream, plan)
    return StreamPlan(
        source=stream.source,
        destinations=stream.destinations,
        gb_per_s=stream.gb_per_s,
        freshness_s=stream.freshness_s,
        stripes=plan.stripes,
        vms=plan.vms,
        cost=StreamCost(
            egress_usd_per_h=cost.egress_usd,
            instance_usd_per_h=cost.instance_usd,
            total_usd_per_h=cost.total_usd,
            lower_bound_usd_per_h=cost.lower_bound_usd,
            gap=cost.gap,
        ),
        paths=paths,
        predicted_delay_s=max(path.delay_s for path in paths),
        capacity_gb_per_s=stream.gb_per_s * SECONDS_PER_HOUR / plan.predicted_time_s,
        algorithm=plan.algorithm,
        solve_time_s=time.perf_counter() - started,
    )


def _paths(stream: Stream, plan: Plan) -> tuple[Path, ...]:
    network, problem, paths = stream.network, stream.problem, list[Path]()
    for number, (tree, _) in enumerate(trees_of(plan.stripes, network)):
        arrivals = stream.delays.arrivals(tree, problem.root)
        before = {v: u for u, v in tree}
        for terminal in problem.terminals:
            nodes = [terminal]
            while nodes[-1] != problem.root:
                nodes.append(before[nodes[-1]])
            regions = tuple(network.regions[v] for v in reversed(nodes))
            paths.append(Path(number, network.regions[terminal], regions, arrivals[terminal]))
    return tuple(paths)


def check_freshness(stream: Stream, trees: FreshTrees) -> None:
    """Fails early where no tree is in time.

    Raises:
        NoPlanError: none is; ``fastest_s`` is the smallest possible delay.
    """
    bounds, freshest = stream.bounds_s, trees.freshest
    if bounds is None or freshest is None or trees.allows(freshest):
        return
    arrivals, limits = stream.delays.arrivals(freshest, stream.problem.root), dict[int, float]()
    limits.update(zip(stream.problem.terminals, bounds, strict=True))
    last = max(limits, key=lambda terminal: arrivals[terminal] - limits[terminal])
    limit, path = limits[last], f"the path from {stream.source} to {stream.network.regions[last]}"
    raise NoPlanError(
        f"no plan brings chunks of {stream.chunk_mb:g} MB from {stream.source} within "
        f"{limit:g} s; the smallest possible delay is {arrivals[last]:.6g} s, and {path} binds; "
        "allow more time, or make chunks smaller",
        fastest_s=arrivals[last],
        binding=path,
    )


def too_much(stream: Stream, error: NoPlanError) -> NoPlanError:
    """The error of the batch in the stream's own terms."""
    if error.fastest_s is None:
        return error
    most = stream.gb_per_s * SECONDS_PER_HOUR / error.fastest_s
    within = "" if stream.freshness_s is None else f" within {stream.freshness_s:g} s"
    return NoPlanError(
        f"no plan carries {stream.gb_per_s:g} GB/s from {stream.source}{within}; the largest "
        f"rate found is {most:.6g} GB/s at a load of {stream.load:g}, and {error.binding} binds; "
        "ask for less, or raise that limit",
        binding=error.binding,
    )
