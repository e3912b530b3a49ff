"""Loss where computing is dear: robust STL for 275,077 machines on two cores.

Measured: what one robust decomposition costs, in CPU time. Computed from it: the share of the
machines that two cores can update within a step of five minutes. Simulated: the loss at that share,
with the scheduler's rules in arrays (``freshet.evaluation``) on the 129 real series, with values
of plain STL. Loss depends on the share and on the series, not on how many machines there are; so
fewer machines of the same kind show it.
"""

from __future__ import annotations

import time

from statsmodels.tsa.seasonal import STL

from benchmarks.context import Context
from benchmarks.figures import Figure, take_turns
from benchmarks.readings import FILE, PERIOD, STEP_MS, WINDOW, readings
from benchmarks.scale import KEYS
from freshet.evaluation.record import ArmRecord
from freshet.evaluation.result import ratio_interval
from freshet.evaluation.series import SeriesWorkload, load_series
from freshet.evaluation.simulation import Simulation
from freshet.evaluation.variants import NONE, UNLIMITED, Arm, Variant

_CORES = 2
_STEPS_A_DAY = 288
_DAYS = 14
_QUICK_DAYS = 1
_SEED = 20_261_120

_POLICIES = ("regret-proportional", "round-robin")


def run(context: Context) -> list[Figure]:
    """Cost, share and loss."""
    context.say("robust STL, CPU time")
    cost = _cost(context.rounds)
    share = _CORES * STEP_MS / 1_000 / cost.median / KEYS
    affordable = Figure(
        f"machines that {_CORES} cores can update in a step",
        "%",
        (100 * share,),
        note=f"computed: {_CORES} cores, {STEP_MS // 1_000} s, {KEYS:,} machines",
    )
    return [cost, affordable, *_losses(context, share)]


def _cost(rounds: int) -> Figure:
    def seconds(robust: bool) -> float:
        window = readings()[:WINDOW, 0].copy()
        begun = time.process_time()
        STL(window, period=PERIOD, robust=robust).fit()
        return time.process_time() - begun

    seconds(True)
    samples = take_turns({"plain": lambda: seconds(False), "robust": lambda: seconds(True)}, rounds)
    plain = Figure("plain STL by statsmodels", "s of CPU", samples["plain"])
    return Figure("robust STL by statsmodels", "s of CPU", samples["robust"], plain)


def _losses(context: Context, share: float) -> list[Figure]:
    steps = (_QUICK_DAYS if context.quick else _DAYS) * _STEPS_A_DAY
    workload = SeriesWorkload(
        load_series(str(FILE), PERIOD), seed=_SEED, step=f"{STEP_MS}ms", steps=steps
    )
    arms = [
        Arm(Variant(UNLIMITED), 1.0),
        Arm(Variant(NONE), 0.0),
        *(Arm(Variant(policy), share) for policy in _POLICIES),
    ]

    def progress(done: int, every: int) -> None:
        if done % _STEPS_A_DAY == 0:
            context.say(f"simulation, day {done // _STEPS_A_DAY} of {every // _STEPS_A_DAY}")

    records = Simulation(workload, _SEED).replay(arms, progress)
    unlimited, never, ours, robin = records
    note = f"simulated: {len(workload.keys)} real series, {steps // _STEPS_A_DAY} days"
    full = _loss(unlimited, None, f"{note}; every machine in every step")
    low, high = ratio_interval(ours, robin, _SEED)
    return [
        full,
        _loss(ours, full, f"{note}; {ours.key_updates.sum():,} updates"),
        _loss(robin, full, f"{note}; {robin.key_updates.sum():,} updates"),
        _loss(never, full, f"{note}; the first values for ever"),
        Figure(
            "regret-proportional, loss beside round-robin",
            "",
            (ours.loss / robin.loss,),
            note=f"95 % interval over machines: {low:.3f} to {high:.3f}",
            details={"interval": [low, high]},
        ),
    ]


def _loss(record: ArmRecord, base: Figure | None, note: str) -> Figure:
    name = f"{record.arm.variant}, loss"
    mean_s, _ = record.staleness_s()
    return Figure(
        name, "x naive error", (record.loss,), base, note=note, details={"staleness_s": mean_s}
    )
