"""Runs an evaluation: workload, engine, result and report."""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any

from freshet.errors import ConfigError
from freshet.evaluation.record import ArmRecord
from freshet.evaluation.result import build_result
from freshet.evaluation.variants import NONE, UNLIMITED, Arm, Variant
from freshet.evaluation.workload import Workload
from freshet.files import is_url, write_file

UNBOUNDED = float("inf")


class Engine(StrEnum):
    """What decides."""

    JOB = "job"
    """The real feature job on an embedded stack."""

    SIMULATION = "simulation"
    """The same rules in arrays; for a first look at many policies and budgets."""


@dataclass(frozen=True)
class EvaluationOptions:
    """What a user may choose beside the workload."""

    variants: Sequence[Variant]
    budgets: Sequence[float]
    seed: int
    engine: Engine
    out: str
    """Folder of the result: a path, or a URL of an object store."""

    tables_at_once: int
    """Tables that one job maintains; more of them run in several jobs, one after the other."""

    parallelism: int
    keep_files: bool
    """Whether the stack's files and logs stay."""

    described: dict[str, Any]
    """Options for the reader of the report."""


Progress = Callable[[str, int, int], None]
"""Called with what is being done, the steps done and the steps to do."""


def run_evaluation(
    workload: Workload, options: EvaluationOptions, progress: Progress
) -> dict[str, Any]:
    """Runs the evaluation and writes ``result.json``, ``result.html`` and its plots.

    Returns:
        The content of ``result.json``.

    Raises:
        ConfigError: no table can be made of the options.
        FreshetError: the stack or a job failed; everything started is stopped.
    """
    fixed = [Arm(Variant(UNLIMITED), UNBOUNDED), Arm(Variant(NONE), 0.0)]
    compared = [Arm(variant, budget) for variant in options.variants for budget in options.budgets]
    started_s = time.monotonic()
    wall_s: dict[str, float] = {}
    if options.engine is Engine.JOB:
        records = _run_job(workload, [*fixed, *compared], options, progress, wall_s)
    else:
        records = _run_simulation(workload, [*fixed, *compared], options, progress)
    wall_s["total"] = time.monotonic() - started_s
    ordered = [*records[2:], *records[:2]]
    result = build_result(
        workload, ordered, seed=options.seed, options=options.described, wall_s=wall_s
    )
    _write(result, options.out)
    return result


def _run_job(
    workload: Workload,
    arms: Sequence[Arm],
    options: EvaluationOptions,
    progress: Progress,
    wall_s: dict[str, float],
) -> list[ArmRecord]:
    # Imported late: a simulation needs no server.
    from freshet.evaluation.job_engine import JobEngine, JobOptions

    # `none` needs no table, so it comes on top, beside `unlimited` in the first.
    size = max(1, options.tables_at_once)
    parts = [arms[: size + 1], *(arms[i : i + size] for i in range(size + 1, len(arms), size))]
    records: list[ArmRecord] = []
    for number, part in enumerate(parts, start=1):
        what = "replay" if len(parts) == 1 else f"replay {number} of {len(parts)}"
        folder = _job_folder(options.out, number)
        progress(f"{what}: starting", 0, workload.steps)
        with JobEngine(JobOptions(folder, options.seed, options.parallelism)) as engine:
            records += engine.replay(workload, part, partial(progress, what))
        for phase, seconds in engine.wall_s.items():
            wall_s[phase] = wall_s.get(phase, 0.0) + seconds
        if not options.keep_files:
            shutil.rmtree(folder, ignore_errors=True)
    return records


def _job_folder(out: str, number: int) -> Path:
    """Where the stack's files are: an empty folder, beside the result if that is local."""
    if is_url(out):
        return Path(tempfile.mkdtemp(prefix="freshet-evaluate-"))
    folder = Path(out) / "job" / f"{number:02d}"
    shutil.rmtree(folder, ignore_errors=True)
    return folder


def _run_simulation(
    workload: Workload, arms: Sequence[Arm], options: EvaluationOptions, progress: Progress
) -> list[ArmRecord]:
    from freshet.evaluation.simulation import POLICIES, Simulation

    unknown = sorted({arm.variant.policy for arm in arms} - {*POLICIES, UNLIMITED, NONE})
    if unknown:
        raise ConfigError(
            [f"{', '.join(unknown)} can't be simulated; use --engine job"], "--policy"
        )
    simulation = Simulation(workload, options.seed)
    return simulation.replay(arms, partial(progress, "simulation"))


def _write(result: dict[str, Any], out: str) -> None:
    # The numbers first: they do not depend on anything being drawn.
    text = json.dumps(result, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    write_file(out, "result.json", text.encode())
    # Imported late: matplotlib takes a second, which a start should not wait for.
    from freshet.evaluation.page import render_page
    from freshet.evaluation.plots import draw_plots
    from freshet.report.figures import to_png

    plots = draw_plots(result)
    write_file(out, "result.html", render_page(result, plots).encode())
    for plot in plots:
        write_file(out, f"{plot.name}.png", to_png(plot.figure))
