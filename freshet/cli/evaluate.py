"""``freshet evaluate``: compare scheduling policies on a user's own data, in the real job."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from freshet.cli.output import JsonOption, emit, note
from freshet.evaluation.queries import Queries
from freshet.evaluation.run import Engine

_DEFAULT_POLICIES = ["regret-proportional", "regret-proportional+keep-4", "round-robin"]
_LONG_PARTS = ("updates_by_key", "loss_by_key", "loss_by_step", "keys")
_LINE_EVERY = 50


def command(
    workload: Annotated[
        str,
        typer.Argument(
            help="stl: forecast time series from their trend and season. als: predict users' "
            "ratings from their embeddings.",
            show_default=False,
        ),
    ],
    data: Annotated[
        str,
        typer.Option(
            help="stl: .npz with values [time, keys], ids, step_seconds and period, or CSV of "
            "series,timestamp,value. als: CSV of user_id,movie_id,rating,timestamp. A path or a "
            "URL; .gz is unpacked.",
            show_default=False,
        ),
    ],
    policy: Annotated[
        list[str] | None,
        typer.Option(
            help="Scheduling policy; may be repeated. With +keep-N the store keeps N versions of "
            "each value and the model is served the best of them. "
            f"Not given: {', '.join(_DEFAULT_POLICIES)}.",
            show_default=False,
        ),
    ] = None,
    budget: Annotated[
        list[float] | None,
        typer.Option(
            min=1e-6,
            help="Updates in a step, as a share of the keys (stl) or of the step's ratings (als); "
            "may be repeated. Not given: 0.01.",
            show_default=False,
        ),
    ] = None,
    queries: Annotated[
        Queries, typer.Option(help="How queries are distributed over keys and time (stl).")
    ] = Queries.UNIFORM,
    seed: Annotated[
        int, typer.Option(help="Of the queries, of random policies and of the intervals.")
    ] = 0,
    out: Annotated[
        str, typer.Option(help="Folder of result.json and result.html: a path or a URL.")
    ] = "out/evaluate",
    steps: Annotated[
        int | None, typer.Option(min=1, help="Steps to replay; all when not given.")
    ] = None,
    step: Annotated[
        str | None,
        typer.Option(
            help="Length of a step: one hour, or one reading if that is longer, when not given "
            "(stl); number of ratings, 50 when not given (als)."
        ),
    ] = None,
    period: Annotated[
        int | None,
        typer.Option(min=2, help="Readings in a season; the file's, or a day (stl)."),
    ] = None,
    ridge: Annotated[float, typer.Option(min=1e-9, help="Ridge of users' vectors (als).")] = 2.0,
    dimensions: Annotated[int, typer.Option(min=1, help="Length of the vectors (als).")] = 16,
    cold_start: Annotated[
        str, typer.Option(help="Vector of a new user: mean or zero (als).")
    ] = "mean",
    biases: Annotated[
        bool, typer.Option(help="Whether the model has biases of movies and users (als).")
    ] = True,
    clip: Annotated[
        bool,
        typer.Option(
            help="Keep predictions within the smallest and the largest rating (als).",
        ),
    ] = True,
    engine: Annotated[
        Engine,
        typer.Option(help="job: the real job in Flink. simulation: the same rules, in seconds."),
    ] = Engine.JOB,
    tables_at_once: Annotated[
        int,
        typer.Option(min=1, help="Tables (a policy with a budget each) that one job maintains."),
    ] = 8,
    parallelism: Annotated[
        int, typer.Option(min=1, help="Subtasks of the job; each has its part of the budget.")
    ] = 1,
    keep_files: Annotated[
        bool, typer.Option("--keep-files", help="Keep the stack's files and logs.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Replay your data under several scheduling policies and budgets, and compare the loss."""
    # Imported late: other commands need none of this.
    from freshet.evaluation.result import conclusion, print_rows
    from freshet.evaluation.run import EvaluationOptions, run_evaluation
    from freshet.evaluation.variants import parse_variant
    from freshet.evaluation.workloads import load_workload

    variants = [parse_variant(text) for text in dict.fromkeys(policy or _DEFAULT_POLICIES)]
    budgets = sorted(set(budget or [0.01]))
    loaded = load_workload(
        workload,
        data,
        queries=queries,
        seed=seed,
        steps=steps,
        step=step,
        period=period,
        ridge=ridge,
        dimensions=dimensions,
        cold_start=cold_start,
        biases=biases,
        clip=clip,
    )
    for text in loaded.notes:
        note(text)
    options = EvaluationOptions(
        variants=variants,
        budgets=budgets,
        seed=seed,
        engine=engine,
        out=out if "://" in out else str(Path(out).absolute()),
        tables_at_once=tables_at_once,
        parallelism=parallelism,
        keep_files=keep_files,
        described={
            "engine": engine.value,
            "data": data.rpartition("/")[2],
            "queries": queries.value,
            "seed": seed,
            "parallelism": parallelism,
            **loaded.describe(),
        },
    )
    with _ProgressBar() as bar:
        result = run_evaluation(loaded, options, bar.show)
    files = [f"{out.rstrip('/')}/{name}" for name in ("result.html", "result.json")]
    short = {part: value for part, value in result.items() if part not in _LONG_PARTS}
    emit(
        short | {"files": files},
        "\n".join(print_rows(result)),
        conclusion(result),
        f"Look at {files[0]} (numbers: {files[1]}).",
        as_json=as_json,
    )


class _ProgressBar:
    """A bar on a terminal, and a line now and then elsewhere."""

    def __init__(self) -> None:
        console = Console(stderr=True, highlight=False)
        self._live = console.is_terminal
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=console,
        )
        self._task: Any = None

    def __enter__(self) -> _ProgressBar:
        if self._live:
            self._bar.start()
            self._task = self._bar.add_task("", total=None)
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self._live:
            self._bar.stop()

    def show(self, what: str, done: int, total: int) -> None:
        """Shows how far the run is."""
        if self._live:
            self._bar.update(self._task, description=what, completed=done, total=total)
        elif done % _LINE_EVERY == 0 or done == total:
            note(f"{what}: step {done} of {total}")
