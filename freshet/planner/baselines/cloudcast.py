"""Cloudcast's own optimizer: a mixed-integer program over stripes, with its three approximations.

Wooders et al., "Cloudcast: High-Throughput, Cost-Aware Overlay Multicast in the Cloud", NSDI 2024,
§3.3, §3.4 and appendix B; here on SCIP. Without approximations (``exact``) it is the reference for
small cases: for more than a handful of regions it takes too long. With them it is ``cloudcast``:

- node clustering: waypoints are only the representatives of about 20 clusters of like regions;
- hop constraining: at most 2 waypoints between the source and a destination;
- stripe-iterative: one stripe at a time, each given what those before have taken.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from ortools.linear_solver import pywraplp

from freshet.planner.errors import NoPlanError
from freshet.planner.model import describe_plan, fewest_vms, shares_of
from freshet.planner.plan import Plan
from freshet.planner.problem import Floats, Ints, Problem
from freshet.planner.trees import Edge, Tree, arborescence_in

NAME = "cloudcast"
EXACT_NAME = "cloudcast-exact"

DEFAULT_STRIPES = 10
"""Where the problem names none; the paper uses 8 to 16."""

CLUSTERS = 20
WAYPOINTS_IN_A_ROW = 2

TIME_LIMIT_S = 60.0
"""Of one mixed-integer program, in CPU seconds."""

_CPU_CLOCK = "timing/clocktype = 1"
"""Makes SCIP's limit one of CPU seconds, so that plans depend less on what else runs."""


@dataclass(frozen=True)
class Approximations:
    """Which of the paper's approximations are used."""

    clusters: int | None = CLUSTERS
    """Regions that represent all that are neither source nor destination; None for all."""

    waypoints: int | None = WAYPOINTS_IN_A_ROW
    """Waypoints on a path; None for any number."""

    stripe_iterative: bool = True
    """Whether stripes are placed one by one."""

    @property
    def none(self) -> bool:
        """Whether the program is exact."""
        return self.clusters is None and self.waypoints is None and not self.stripe_iterative


EXACT = Approximations(None, None, False)


def solve(
    problem: Problem,
    approximations: Approximations = Approximations(),
    time_limit_s: float | None = None,
) -> Plan:
    """Plans equal stripes.

    Args:
        problem: with a deadline, which the program can't do without.
        approximations: to use.
        time_limit_s: CPU seconds for all programs together; None for ``TIME_LIMIT_S`` for each.

    Raises:
        NoPlanError: there is no deadline, or no plan was found in time.
    """
    started = time.perf_counter()
    if problem.deadline_s is None:
        raise NoPlanError(f"{NAME} needs a deadline; give one, or use the algorithm 'optimal'")
    stripes = problem.stripes or DEFAULT_STRIPES
    nodes = _nodes(problem, approximations.clusters)
    one_by_one = approximations.stripe_iterative
    trees: list[Tree] = []
    bound = 0.0
    solving_since = time.process_time()
    for _ in range(stripes if one_by_one else 1):
        program = _Program(problem, nodes, stripes, 1 if one_by_one else stripes, trees)
        if approximations.waypoints is not None:
            program.limit_hops(approximations.waypoints + 1)
        left = TIME_LIMIT_S
        if time_limit_s is not None:
            left = time_limit_s - (time.process_time() - solving_since)
        found, bound = program.solve(left)
        trees += found
    placed = [(tree, 1.0 / stripes) for tree in trees]
    shares = shares_of(problem, _mix(trees, stripes))
    return describe_plan(
        problem,
        placed,
        fewest_vms(problem, shares, problem.deadline_s),
        algorithm=EXACT_NAME if approximations.none else NAME,
        started=started,
        lower_bound_usd=bound if approximations.none and problem.billed_s is not None else 0.0,
    )


def exact(problem: Problem) -> Plan:
    """Plans equal stripes without approximations; for small networks only."""
    return solve(problem, EXACT)


class _Program:
    """The mixed-integer program (eq. 12 to 19) for some stripes, beside those placed before."""

    def __init__(
        self, problem: Problem, nodes: list[int], stripes: int, count: int, before: list[Tree]
    ) -> None:
        self._problem, self._nodes = problem, nodes
        self._before = before
        self._size = 1.0 / stripes
        links = problem.network.links
        self._edges = [(u, v) for u in nodes for v in nodes if links[u, v] and v != problem.root]
        self._solver = solver = pywraplp.Solver.CreateSolver("SCIP")
        solver.SetSolverSpecificParametersAsString(_CPU_CLOCK)
        most = problem.network.max_vms
        self._vms = {v: solver.IntVar(0, int(most[v]), "") for v in nodes}  # eq. 13
        self._paths = [{edge: solver.BoolVar("") for edge in self._edges} for _ in range(count)]
        for path in self._paths:
            self._require_tree(path)
        self._require_capacity()
        self._minimise_cost()

    def limit_hops(self, hops: int) -> None:
        """Bounds the number of links between the source and any region."""
        for path in self._paths:
            depth = {v: self._solver.NumVar(0.0, hops, "") for v in self._nodes}
            for (u, v), used in path.items():
                self._solver.Add(depth[v] >= depth[u] + 1 - (hops + 1) * (1 - used))

    def solve(self, time_limit_s: float) -> tuple[list[Tree], float]:
        """The stripes' trees, and a bound of the cost.

        Args:
            time_limit_s: CPU seconds, after which the best trees so far do.

        Raises:
            NoPlanError: there are none, or none was found in time.
        """
        problem = self._problem
        status = pywraplp.Solver.NOT_SOLVED
        if time_limit_s > 0:
            # In ms, of which 0 would be no limit.
            self._solver.SetTimeLimit(max(1, round(time_limit_s * 1000)))
            status = self._solver.Solve()
        if status == pywraplp.Solver.NOT_SOLVED:
            raise NoPlanError(
                f"{NAME} was cut off before it found a plan within {problem.deadline_s:g} s; allow "
                "more time, or use the algorithm 'optimal'"
            )
        if status not in (pywraplp.Solver.OPTIMAL, pywraplp.Solver.FEASIBLE):
            raise NoPlanError(
                f"{NAME} finds no plan within {problem.deadline_s:g} s; allow more time, or use "
                "the algorithm 'optimal'"
            )
        prices = problem.network.price_usd_per_gb
        trees = []
        for path in self._paths:
            used = [edge for edge, variable in path.items() if variable.solution_value() > 0.5]
            tree = arborescence_in(used, prices, problem.root, problem.terminals)
            assert tree is not None, "flow to all destinations needs a path to each"
            trees.append(tree)
        return trees, float(self._solver.Objective().BestBound())

    def _require_tree(self, path: dict[Edge, pywraplp.Variable]) -> None:
        """Flow of one unit to each destination, only along links that are used (eq. 9 to 11)."""
        problem, solver = self._problem, self._solver
        wanted = len(problem.terminals)
        flow = {edge: solver.NumVar(0.0, wanted, "") for edge in path}
        for edge, used in path.items():
            solver.Add(flow[edge] >= used)
            solver.Add(flow[edge] <= wanted * used)
        for v in self._nodes:
            into = sum(flow[edge] for edge in path if edge[1] == v)
            out = sum(flow[edge] for edge in path if edge[0] == v)
            if v == problem.root:
                solver.Add(out == wanted)
                continue
            solver.Add(into - out == (1 if v in problem.terminals else 0))
            # The equations leave this to the prices; links that are free need it said.
            solver.Add(sum(used for edge, used in path.items() if edge[1] == v) <= 1)

    def _require_capacity(self) -> None:
        """Links, egress and ingress (eq. 14 to 16), whose capacities are VMs times TIME."""
        problem, network, solver = self._problem, self._problem.network, self._solver
        per_vm = (problem.deadline_s or 0.0) / problem.bits
        taken = self._taken()
        out = {v: [float(taken[v].sum())] for v in self._nodes}
        into = {v: [float(taken[:, v].sum())] for v in self._nodes}
        for u, v in self._edges:
            used = [self._size * path[u, v] for path in self._paths]
            out[u] += used
            into[v] += used
            capacity = float(network.bandwidth_bps[u, v]) * per_vm
            solver.Add(taken[u, v] + sum(used) <= capacity * self._vms[u])
            for path in self._paths:
                solver.Add(path[u, v] <= self._vms[u])
                solver.Add(path[u, v] <= self._vms[v])
        for v in self._nodes:
            if np.isfinite(network.egress_bps[v]):
                solver.Add(sum(out[v]) <= float(network.egress_bps[v]) * per_vm * self._vms[v])
            if np.isfinite(network.ingress_bps[v]):
                solver.Add(sum(into[v]) <= float(network.ingress_bps[v]) * per_vm * self._vms[v])
            self._require_fewest(v)

    def _require_fewest(self, v: int) -> None:
        problem, fewest = self._problem, int(self._problem.network.min_vms[v])
        if v == problem.root or v in problem.terminals:
            self._solver.Add(self._vms[v] >= fewest)
        elif fewest > 1:
            used = self._solver.BoolVar("")
            self._solver.Add(self._vms[v] >= fewest * used)
            self._solver.Add(self._vms[v] <= int(problem.network.max_vms[v]) * used)

    def _minimise_cost(self) -> None:
        problem, network = self._problem, self._problem.network
        egress = [
            float(network.price_usd_per_gb[edge]) * problem.volume_gb * self._size * used
            for path in self._paths
            for edge, used in path.items()
        ]
        instances = [
            float(network.vm_usd_per_s[v]) * (problem.deadline_s or 0.0) * count
            for v, count in self._vms.items()
        ]
        self._solver.Minimize(sum(egress) + sum(instances))

    def _taken(self) -> Floats:
        return shares_of(self._problem, _mix(self._before, round(1 / self._size)))


def _mix(trees: list[Tree], stripes: int) -> dict[Tree, float]:
    mix: dict[Tree, float] = {}
    for tree in trees:
        mix[tree] = mix.get(tree, 0.0) + 1.0 / stripes
    return mix


def _nodes(problem: Problem, clusters: int | None) -> list[int]:
    """Source, destinations, and the waypoints to consider."""
    ends = [problem.root, *problem.terminals]
    usable = problem.network.max_vms > 0
    others = [v for v in np.flatnonzero(usable).tolist() if v not in ends]
    if clusters is None or len(others) <= clusters:
        return sorted(ends + others)
    return sorted(
        ends + [others[i] for i in _representatives(_features(problem), others, clusters)]
    )


def _features(problem: Problem) -> Floats:
    """Prices and bandwidths of each region's links in both directions, each of mean square 1."""
    network = problem.network
    parts = []
    for matrix in (network.price_usd_per_gb, network.bandwidth_bps):
        scale = float(np.sqrt((matrix**2).mean())) or 1.0
        parts += [matrix / scale, matrix.T / scale]
    return np.hstack(parts)


def _representatives(features: Floats, others: list[int], clusters: int) -> Ints:
    """Regions that are farthest from each other, one by one (Gonzalez, 1985)."""
    points = features[others]
    chosen = [int(((points - points.mean(axis=0)) ** 2).sum(axis=1).argmin())]
    distance = ((points - points[chosen[0]]) ** 2).sum(axis=1)
    while len(chosen) < clusters:
        chosen.append(int(distance.argmax()))
        distance = np.minimum(distance, ((points - points[chosen[-1]]) ** 2).sum(axis=1))
    return np.array(chosen, np.int64)
