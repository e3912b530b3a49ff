"""Goal: ``freshet plan`` writes what was asked for, and its exit code says what went wrong.

Method: the command runs in this process, on the profiles that ship.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from freshet.cli.main import app
from freshet.planner import Plan, Problem
from tests.unit.planner.checker import assert_valid
from tests.unit.planner.networks import CLOUDS, INTRA_AWS, clouds

RUN = ["plan", "--source", INTRA_AWS[0], "--volume-gb", "100", "--profiles", str(CLOUDS)]
DESTINATIONS = [part for region in INTRA_AWS[1][:3] for part in ("--destination", region)]


def run(*arguments: str, code: int = 0) -> Any:
    """The command's result, after it has ended with a code."""
    result = CliRunner().invoke(app, [*RUN, *arguments])
    assert result.exit_code == code, result.output
    return result


def test_plan_as_json_file_and_picture(tmp_path: Path) -> None:
    output, picture = tmp_path / "plan.json", tmp_path / "pictures" / "plan.svg"
    result = run(
        *DESTINATIONS,
        "--deadline-s",
        "120",
        "--stripes",
        "5",
        "--json",
        "--output",
        str(output),
        "--picture",
        str(picture),
    )
    problem = Problem(clouds(), INTRA_AWS[0], INTRA_AWS[1][:3], 100.0, 120.0, 5)
    written = json.loads(output.read_text())
    assert written == json.loads(result.stdout)
    assert_valid(written, problem)
    assert Plan.from_dict(written).to_dict() == written
    text = picture.read_text()
    assert text.startswith("<svg")
    assert "currentColor" not in text


def test_plan_for_people() -> None:
    text = " ".join(run(*DESTINATIONS).stdout.split())
    assert "No plan costs less than $" in text
    assert f"Tree 1, 50.00%: from {INTRA_AWS[0]} └── aws:us-west-2, $0.09/GB, 50 GB, link " in text


def test_compare_and_frontier(tmp_path: Path) -> None:
    picture = tmp_path / "algorithms.svg"
    result = json.loads(run(*DESTINATIONS, "--compare", "--json", "--picture", str(picture)).stdout)
    assert {"optimal", "direct", "spider", "steiner"} <= set(result["algorithms"])
    costs = [plan["cost_as_used_usd"] for plan in result["frontier"]]
    times = [plan["predicted_time_s"] for plan in result["frontier"]]
    assert costs == sorted(costs, reverse=True)
    assert times == sorted(times)
    assert times[0] <= result["fastest_s"] * 1.002
    assert 0 <= result["knee"] < len(costs)
    assert picture.stat().st_size > 10_000


def test_no_plan_in_time() -> None:
    result = run(*DESTINATIONS, "--deadline-s", "5", "--json", code=3)
    assert "fastest possible time is 80 s, and the egress limit of 2 VMs" in result.stderr
    assert json.loads(result.stdout)["fastest_s"] == pytest.approx(80.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--destination", "aws:us-east1"], "unknown; did you mean 'aws:us-east-1'?"),
        ([*DESTINATIONS, "--deadline-s", "-1"], "deadline_s must be more than 0, not -1.0"),
        ([*DESTINATIONS, "--algorithm", "spyder"], "unknown; did you mean 'spider'?"),
        ([*DESTINATIONS, "--billing", "usd"], "unknown; did you mean 'used'?"),
        ([*DESTINATIONS, "--limits", "/nowhere.json"], "/nowhere.json can't be read"),
        ([*DESTINATIONS, "--running", "/nowhere.json"], "/nowhere.json can't be read"),
        ([], "Missing option '--destination'"),
    ],
)
def test_bad_input(arguments: list[str], message: str) -> None:
    assert message in run(*arguments, code=2).stderr
