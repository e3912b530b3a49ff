"""Runs the benchmarks: ``python -m benchmarks [--only NAME ...] [--quick] [--out FOLDER]``."""

from __future__ import annotations

import argparse
import importlib
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from benchmarks import report
from benchmarks.context import REPOSITORY, Context
from benchmarks.exhibits import Exhibit
from benchmarks.figures import Figure

BENCHMARKS = {
    "operator": ("benchmarks.operator_throughput", "Events through the operator"),
    "scheduler": ("benchmarks.scheduler_cost", "Cost of scheduling"),
    "state": ("benchmarks.state_size", "State of a key"),
    "reads": ("benchmarks.online_reads", "Reads, and memory of the online store"),
    "writer": ("benchmarks.store_writer", "Writes to the online store"),
    "dissemination": ("benchmarks.dissemination", "Changes into chunks"),
    "chunks": ("benchmarks.chunks", "Chunks of changes"),
    "execution-mode": ("benchmarks.execution_mode", "Execution mode of the feature function"),
    "stl-linear": ("benchmarks.stl_linear", "STL as one matrix product"),
    "stl": ("benchmarks.stl_throughput", "STL updates through the whole pipeline"),
    "freshness": ("benchmarks.freshness", "From event to readable feature"),
    "planner": ("benchmarks.planner", "Multicast plans"),
    "planner-paper": ("benchmarks.planner_paper", "The paper's evaluation; part of planner"),
    "planner-times": ("benchmarks.planner_times", "Solve times; part of planner"),
    "planner-approximations": (
        "benchmarks.planner_approximations",
        "The paper's approximations; part of planner",
    ),
    "wan": ("benchmarks.wan", "Emulated WAN"),
    "planner-streams": ("benchmarks.planner_streams", "Multicast plans for streams"),
    "scale": ("benchmarks.scale", "275,077 keys"),
    "multicast-cost": ("benchmarks.multicast_cost", "Multicast beside MirrorMaker"),
    "multicast-slow-region": ("benchmarks.multicast_slow_region", "Multicast past a slow region"),
    "multicast-congestion": ("benchmarks.multicast_congestion", "Multicast under congestion"),
    "multicast-bootstrap": ("benchmarks.multicast_bootstrap", "A new region gets a large table"),
    "multicast-speed": ("benchmarks.multicast_speed", "Changes through multicast and region jobs"),
    "robust-stl": ("benchmarks.robust_stl", "Loss where computing is dear"),
}
"""Name to module and title, in the order in which they run."""

ON_REQUEST = (
    "planner-paper",
    "planner-times",
    "planner-approximations",
    "scale",
    "multicast-cost",
    "multicast-slow-region",
    "multicast-congestion",
    "multicast-bootstrap",
    "multicast-speed",
    "robust-stl",
)
"""Run only when they are named: they take long, or much memory and disk, or are part of others."""

_LOG_WIDTH = 140


def main() -> int:
    """Runs what was asked for; 1 if a benchmark could not run."""
    arguments = _parse()
    # As an interrupt: every `with` block ends what it started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    console = Console()
    if not console.is_terminal:
        console = Console(width=_LOG_WIDTH)
    started = time.monotonic()
    results: dict[str, list[Figure | Exhibit]] = {}
    failed = []
    for name in arguments.only or (name for name in BENCHMARKS if name not in ON_REQUEST):
        try:
            results[name] = _run(console, arguments, name, started)
        except Exception as error:
            traceback.print_exc()
            if _hides_interrupt(error):
                return 130
            failed.append(name)
            continue
        # After each, so that an interrupted run leaves what it has.
        written = report.write(arguments.out, results, quick=arguments.quick)
    if results:
        console.print(f"\nReport: {written}, charts beside it")
    if failed:
        console.print(f"[red]Could not run: {', '.join(failed)}[/]")
    return 1 if failed else 0


def _hides_interrupt(error: BaseException | None) -> bool:
    """Whether an interrupt came first, and stopping what ran then failed."""
    return error is not None and (
        isinstance(error, KeyboardInterrupt) or _hides_interrupt(error.__context__)
    )


def _run(
    console: Console, arguments: argparse.Namespace, name: str, started: float
) -> list[Figure | Exhibit]:
    module, title = BENCHMARKS[name]

    def say(text: str) -> None:
        seconds = int(time.monotonic() - started)
        stamp = f"{seconds // 60:02d}:{seconds % 60:02d}"
        console.print(f"[dim]{stamp} {name}: {escape(text)}[/]")

    say(f"{title} ...")
    with tempfile.TemporaryDirectory(prefix="freshet-bench-") as scratch:
        context = Context(arguments.quick, Path(scratch), arguments.cache, say)
        shown: list[Figure | Exhibit] = importlib.import_module(module).run(context)
    report.show(console, title, shown)
    return shown


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=list(BENCHMARKS), metavar="NAME",
                        help=f"of {', '.join(BENCHMARKS)}; only when named here:"
                             f" {', '.join(ON_REQUEST)}")  # fmt: skip
    parser.add_argument("--quick", action="store_true",
                        help="one small round: to try them out, not for figures")  # fmt: skip
    parser.add_argument("--out", type=Path, default=Path("out/bench"),
                        help="folder for report.json and the charts")  # fmt: skip
    parser.add_argument("--cache", type=Path, default=REPOSITORY / ".bench",
                        help="folder for Feast's environment")  # fmt: skip
    arguments = parser.parse_args()
    arguments.cache = arguments.cache.absolute()
    return arguments


if __name__ == "__main__":
    sys.exit(main())
