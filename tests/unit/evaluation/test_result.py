"""The result's contract, and its report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from freshet.evaluation.result import build_result, conclusion, print_rows
from freshet.evaluation.run import Engine, EvaluationOptions, run_evaluation
from freshet.evaluation.series import SeriesWorkload
from freshet.evaluation.variants import Variant
from tests.unit.evaluation.made_up import grid


@pytest.fixture
def options(tmp_path: Path) -> EvaluationOptions:
    return EvaluationOptions(
        variants=[Variant("round-robin"), Variant("regret-proportional", 2)],
        budgets=[0.2, 0.4],
        seed=1,
        engine=Engine.SIMULATION,
        out=str(tmp_path / "out"),
        tables_at_once=4,
        parallelism=1,
        keep_files=False,
        described={"engine": "simulation"},
    )


def test_the_contract(options: EvaluationOptions) -> None:
    told: list[tuple[str, int, int]] = []
    workload = SeriesWorkload(grid(readings=120, late=True))
    returned = run_evaluation(workload, options, lambda *step: told.append(step))
    result = json.loads((Path(options.out) / "result.json").read_text())
    assert result == json.loads(json.dumps(returned))
    assert result["workload"] == "stl"
    rows = {(row["policy"], row["budget"]): row for row in result["rows"]}
    assert set(rows) == {
        ("round-robin", 0.2),
        ("round-robin", 0.4),
        ("regret-proportional+keep-2", 0.2),
        ("regret-proportional+keep-2", 0.4),
        ("unlimited", None),
        ("none", None),
    }
    for row in rows.values():
        assert {"loss", "updates", "regret", "staleness_mean", "staleness_p99"} <= set(row)
        assert row["staleness_mean"] <= row["staleness_p99"]
        assert row["regret"] == pytest.approx(row["loss"] - rows["unlimited", None]["loss"])
    by_key = result["updates_by_key"]["round-robin at 0.2"]
    assert sum(by_key) == rows["round-robin", 0.2]["updates"]
    assert told[-1][1:] == (workload.steps, workload.steps)


def test_the_page_needs_no_other_file(options: EvaluationOptions) -> None:
    run_evaluation(SeriesWorkload(grid(readings=120)), options, lambda *step: None)
    folder = Path(options.out)
    html = (folder / "result.html").read_text()
    assert html.count("<svg") == 4
    for reference in ("src=", "@import", "<link"):
        assert reference not in html
    for name in ("loss", "time", "updates", "staleness"):
        assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def test_the_table_has_a_line_for_each_row(options: EvaluationOptions) -> None:
    result = run_evaluation(SeriesWorkload(grid(readings=120)), options, lambda *step: None)
    lines = print_rows(result)
    assert len(lines) == 1 + len(result["rows"])
    assert "regret-proportional+keep-2" in "\n".join(lines)
    assert "95 % interval" in conclusion(result)


def test_an_interval_of_equal_arms_is_one(options: EvaluationOptions) -> None:
    from freshet.evaluation.record import ArmRecord
    from freshet.evaluation.simulation import Simulation
    from freshet.evaluation.variants import NONE, UNLIMITED, Arm

    workload = SeriesWorkload(grid(readings=120))
    arms = [
        Arm(Variant("round-robin"), 1.0),
        Arm(Variant("regret-proportional"), 1.0),
        Arm(Variant(UNLIMITED), float("inf")),
        Arm(Variant(NONE), 0.0),
    ]
    records: list[ArmRecord] = Simulation(workload).replay(arms)
    result = build_result(workload, records, seed=0, options={}, wall_s={})
    for comparison in result["comparisons"]:
        assert comparison["loss_ratio"] == 1
        assert comparison["interval"] == [1, 1]
