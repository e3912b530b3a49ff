"""The paper's claims for its six jobs (footnotes 1 to 6) beside the model's of our plans."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from benchmarks import cloudcast_claims as claims
from benchmarks.context import Context
from benchmarks.exhibits import Exhibit
from benchmarks.figures import Figure
from benchmarks.multicast_jobs import PAPER, Job
from freshet.planner import Billing, Network, Plan, make_plan
from freshet.planner.optimal.planner import fastest_possible

HIGH_THROUGHPUT = 1.001
"""Deadline of the high-throughput plan (HT, Table 2), over the fastest possible time."""

_AZURE, _OPT = PAPER[2], PAPER[5]


@dataclass(frozen=True)
class Compared:
    """The plans for one job, VMs billed as used."""

    job: Job
    direct: Plan
    spider: Plan
    steiner: Plan
    mesh: Plan
    fast: Plan
    """HT: the tightest deadline."""

    cheap: Plan
    """LC: no deadline."""


def run(context: Context, network: Network) -> Iterable[Figure | Exhibit]:
    """Savings and speed-ups over direct, SPIDER and the Steiner tree."""
    found = []
    for job in PAPER:
        context.say(f"beside the paper's claims, {job.name}")
        found.append(_compare(job, network))
    for each in found:
        yield from _figures(each)
    yield _table(found)
    yield _further_claims({each.job: each for each in found})


def saving(own: Plan, other: Plan) -> float:
    """Share of the other plan's cost that is saved."""
    return 1 - own.cost_as_used_usd / other.cost_as_used_usd


def speed_up(own: Plan, other: Plan) -> float:
    """How many times as fast as the other plan."""
    return other.predicted_time_s / own.predicted_time_s


def speed_up_with_start(own: Plan, other: Plan) -> float:
    """The same where both wait for the slowest of their VMs to start."""
    return _with_start(other) / _with_start(own)


def _with_start(plan: Plan) -> float:
    starts = [claims.VM_START_S[region.partition(":")[0]] for region in plan.vms]
    return plan.predicted_time_s + max(starts)


def _compare(job: Job, network: Network) -> Compared:
    problem = replace(job.on(network), billing=Billing.USED)
    tightest = fastest_possible(problem).seconds * HIGH_THROUGHPUT
    return Compared(
        job,
        direct=make_plan(problem, "direct"),
        spider=make_plan(problem, "spider"),
        steiner=make_plan(problem, "steiner"),
        mesh=make_plan(problem, "mesh"),
        fast=make_plan(problem.with_deadline(tightest)),
        cheap=make_plan(problem),
    )


def _figures(each: Compared) -> Iterable[Figure]:
    name, fast, direct = each.job.name, each.fast, each.direct
    cost = Figure(f"direct, {name}", "$", (direct.cost_as_used_usd,))
    yield Figure(f"tightest deadline, {name}", "$", (fast.cost_as_used_usd,), cost)
    seconds = Figure(f"direct, {name}", "s", (direct.predicted_time_s,))
    yield Figure(f"tightest deadline, {name}", "s", (fast.predicted_time_s,), seconds)


def _table(found: list[Compared]) -> Exhibit:
    paper = (
        "paper, footnotes 2 to 5",
        "$20 to $110",
        "",
        claims.SAVING_OVER_DIRECT.as_percent(),
        claims.SPEED_UP_OVER_DIRECT.as_factor(),
        "",
        claims.SAVING_OVER_SPIDER.as_percent(),
        claims.SPEED_UP_OVER_SPIDER.as_factor(),
        "",
        "as Steiner",
    )
    return Exhibit(
        "planner-claims",
        "The paper's claims beside the model (HT: tightest deadline, LC: none)",
        (
            "job",
            "direct",
            "HT",
            "saves over direct",
            "faster than direct",
            "with VM start",
            "saves over SPIDER",
            "faster than SPIDER",
            "LC saves over direct",
            "LC's cost over Steiner's",
        ),
        (paper, *(_row(each) for each in found)),
        "The paper measured on real clouds, with object stores at both ends; the model knows links "
        "and VMs only. `with VM start` adds the start-up times of the paper's Figure 15 to both.",
    )


def _row(each: Compared) -> tuple[str, ...]:
    fast, cheap, direct, spider = each.fast, each.cheap, each.direct, each.spider
    return (
        each.job.name,
        _cost_and_time(direct),
        _cost_and_time(fast),
        f"{saving(fast, direct):.0%}",
        f"{speed_up(fast, direct):.2f} ×",
        f"{speed_up_with_start(fast, direct):.2f} ×",
        f"{saving(fast, spider):.0%}",
        f"{speed_up(fast, spider):.2f} ×",
        f"{saving(cheap, direct):.0%}, {_cost_and_time(cheap)}",
        f"{cheap.cost_as_used_usd / each.steiner.cost_as_used_usd:.3f}",
    )


def _cost_and_time(plan: Plan) -> str:
    return f"${plan.cost_as_used_usd:.2f}, {plan.predicted_time_s:.3g} s"


def _further_claims(found: dict[Job, Compared]) -> Exhibit:
    azure, opt = found[_AZURE], found[_OPT]
    egress = {
        name: f"${plan.cost.egress_usd:.2f}"
        for name, plan in (("direct", azure.direct), ("mesh", azure.mesh), ("ours", azure.fast))
    }
    less = 1 - opt.fast.cost.egress_usd / opt.direct.cost.egress_usd
    return Exhibit(
        "planner-further-claims",
        "Further claims",
        ("claim of the paper", "model"),
        (
            (
                f"(6) costs {claims.SAVING_OVER_S3:.1%} less than S3's replication, whose egress is"
                " direct's and which takes a fee",
                f"{less:.1%} less egress than direct; S3's fee is not modelled",
            ),
            (
                f"(6) {claims.SPEED_UP_OVER_S3:g} × as fast as S3's replication",
                "not modelled: S3 tells no bandwidth",
            ),
            (
                "(3) Bullet's egress costs less than direct's and more than Cloudcast's",
                f"direct {egress['direct']}, mesh {egress['mesh']}, ours {egress['ours']}",
            ),
            (
                f"(3) {claims.SPEED_UP_OVER_BITTORRENT:g} × as fast as BitTorrent, for"
                f" {claims.SAVING_OVER_BITTORRENT:.1%} less",
                "not modelled: BitTorrent's clients, not links and VMs, were what was slow",
            ),
        ),
    )
