"""Goal: a step is waited for until it is done, but not for a job that has ended, nor for ever.

Method: a real job that gets no events, so that no step is ever done. Another test's job, which the
cluster still remembers as ended, is no reason to give up.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from freshet import lockstep
from freshet.errors import JobError
from freshet.lockstep import wait_for_step
from freshet.observer import Observer, ProductionLog
from freshet.stack.stack import Stack
from tests.integration.job import Job, running

END_MS = 3_600_000

DEFINITION = """
from freshet import *

table = FeatureTable(
    name={name!r}, function=Aggregate(), window=Points(3), budget=Rate(1.0), parallelism=1
)
"""


def submitted(stack: Stack, folder: Path, name: str) -> Job:
    file = folder / f"{name}.py"
    file.write_text(DEFINITION.format(name=name), encoding="utf-8")
    return Job(stack, file)


@pytest.mark.integration
def test_a_step_is_not_waited_for_in_vain(
    stack: Stack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lockstep, "_JOB_CHECK_INTERVAL_S", 0.0)
    with running(submitted(stack, tmp_path, "lockstep_ended")) as other:
        ended = other.id
        assert ended is not None
    rest, shown = stack.flink.rest, []
    with (
        running(submitted(stack, tmp_path, "lockstep_silent")) as job,
        Observer(stack.config, [job.table], ProductionLog()) as observer,
    ):
        assert job.id is not None
        with pytest.raises(JobError, match=r"^too late$"):
            wait_for_step(
                observer,
                rest,
                [job.id],
                END_MS,
                2.0,
                too_late="too late",
                waiting=lambda: shown.append(1),
            )
        assert len(shown) > 1
        with pytest.raises(JobError, match=rf"job {ended} .* is CANCELED"):
            wait_for_step(observer, rest, [job.id, ended], END_MS, 60.0, too_late="too late")
