"""The workloads by name."""

from __future__ import annotations

from freshet.errors import ConfigError
from freshet.evaluation.queries import Queries
from freshet.evaluation.series import SeriesWorkload, load_series
from freshet.evaluation.workload import Workload
from freshet.table.checks import suggestion

NAMES = ["stl", "als"]


def load_workload(
    name: str,
    data: str,
    *,
    queries: Queries,
    seed: int,
    steps: int | None,
    step: str | None,
    period: int | None,
    ridge: float,
    dimensions: int,
    cold_start: str,
    biases: bool,
    clip: bool,
) -> Workload:
    """Loads the data of a workload.

    Args:
        name: ``stl`` or ``als``.
        data: path or URL.
        queries: how they are distributed; ``stl`` only.
        seed: of the queries and of the training.
        steps: how many to replay at most; None for all.
        step: length of a step; None for the workload's own.
        period: readings in a season; ``stl`` only.
        ridge: of users' vectors; ``als`` only.
        dimensions: of the vectors; ``als`` only.
        cold_start: vector of a new user, ``mean`` or ``zero``; ``als`` only.
        biases: whether the model has biases; ``als`` only.
        clip: whether predictions are kept within the ratings' scale; ``als`` only.

    Raises:
        ConfigError: an option does not fit, or there is nothing to replay.
        ReplayError: the data can't be read.
    """
    if name == "stl":
        grid = load_series(data, period)
        return SeriesWorkload(grid, queries=queries, seed=seed, step=step, steps=steps)
    if name == "als":
        from freshet.evaluation.ratings import RatingsWorkload, load_ratings

        if queries is not Queries.UNIFORM:
            raise ConfigError(
                ["als has queries of its own, one for each rating; leave --queries out"], "als"
            )
        return RatingsWorkload(
            load_ratings(data),
            seed=seed,
            steps=steps,
            ratings_per_step=_count(step),
            ridge=ridge,
            dimensions=dimensions,
            cold_start=cold_start,
            biases=biases,
            clip=clip,
        )
    raise ConfigError(
        [f"workload {name!r} is unknown{suggestion(name, NAMES)}"], "freshet evaluate"
    )


def _count(step: str | None) -> int | None:
    if step is None:
        return None
    if not step.isdigit() or int(step) < 1:
        raise ConfigError([f"--step {step!r} is no number of ratings"], "als")
    return int(step)
