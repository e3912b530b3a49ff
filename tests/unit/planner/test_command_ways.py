"""Goal: streams, confidence and re-planning from the command line say what the planner found.

Method: the command runs in this process, on profiles of six regions; JSON is checked against plans
made in Python, and text for what a reader must learn from it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from freshet.cli.main import app
from freshet.planner import Plan, Problem, Stream, StreamPlan, load_network, plan_stream
from freshet.planner.confidence import probability_in_time
from tests.unit.planner.checker import assert_valid
from tests.unit.planner.networks import clouds
from tests.unit.planner.stream_checker import assert_valid as assert_valid_stream

REGIONS = ("aws:us-east-1", "aws:eu-west-1", "gcp:us-east4-a", "azure:eastus", "aws:us-west-2")
ENDS = ("--source", REGIONS[0], "--destination", REGIONS[1], "--destination", REGIONS[2])


@pytest.fixture
def profiles(tmp_path: Path) -> Path:
    return write_profiles(tmp_path / "profiles")


def write_profiles(folder: Path, slower: float = 1.0) -> Path:
    """Profiles of a few of the clouds' regions, with links of some speed."""
    network = clouds()
    folder.mkdir(exist_ok=True)
    prices, speeds = ["src,dest,cost"], ["src_region,dst_region,throughput_sent"]
    for u in REGIONS:
        for v in REGIONS:
            edge = network.index[u], network.index[v]
            prices.append(f"{u},{v},{network.price_usd_per_gb[edge]}")
            speeds.append(f"{u},{v},{network.bandwidth_bps[edge] * slower}")
    (folder / "cost.csv").write_text("\n".join(prices))
    (folder / "throughput.csv").write_text("\n".join(speeds))
    (folder / "limits.json").write_text(json.dumps({"default": {"usd_per_hour": 0.54}}))
    return folder


def run(profiles: Path, *arguments: object, code: int = 0) -> Any:
    """The command's result, after it has ended with a code."""
    given = ["plan", "--profiles", str(profiles), *ENDS, *map(str, arguments)]
    result = CliRunner().invoke(app, given)
    assert result.exit_code == code, result.output
    return result


def words(text: str) -> str:
    """Text without its line breaks."""
    return " ".join(text.split())


def as_json(profiles: Path, *arguments: object, code: int = 0) -> Any:
    return json.loads(run(profiles, *arguments, "--json", code=code).stdout)


BATCH = ("--volume-gb", 100, "--deadline-s", 200)
STREAM = ("--gb-per-s", 0.2, "--freshness-s", 0.5, "--latency-s", 0.05)


def test_stream(profiles: Path, tmp_path: Path) -> None:
    picture = tmp_path / "stream.svg"
    stream = Stream(
        load_network(str(profiles)),
        REGIONS[0],
        REGIONS[1:3],
        0.2,
        freshness_s=0.5,
        chunk_mb=4,
        latency_s=0.05,
    )
    result = as_json(profiles, *STREAM, "--chunk-mb", 4, "--picture", picture)
    assert_valid_stream(result, stream)
    assert result["cost"]["total_usd_per_h"] == plan_stream(stream).cost.total_usd_per_h
    assert picture.read_text().startswith("<svg")
    text = words(run(profiles, *STREAM, "--chunk-mb", 4).stdout)
    assert f"${result['cost']['total_usd_per_h']:.4f} per hour" in text
    for path in result["paths"]:
        assert f"after {path['delay_s']:.3g} s" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--freshness-s", 0.001), "the smallest possible delay is 0.0"),
        (("--freshness-s", 0.001), "and the path from aws:us-east-1 to"),
        (("--load", 0.0001), "the largest rate found is"),
        (("--load", 0.0001), "at a load of 0.0001, and the bandwidth from"),
    ],
)
def test_stream_beyond_the_network(
    profiles: Path, arguments: tuple[object, ...], message: str
) -> None:
    assert message in run(profiles, "--gb-per-s", 0.2, *arguments, code=3).stderr


def test_confidence(profiles: Path) -> None:
    network = load_network(str(profiles))
    problem = Problem(network, REGIONS[0], REGIONS[1:3], 100.0)
    usual = Plan.from_dict(as_json(profiles, "--volume-gb", 100))
    problem = problem.with_deadline(usual.predicted_time_s * 1.02)
    arguments = ("--volume-gb", 100, "--deadline-s", problem.deadline_s, "--spread", 0.15)
    result = as_json(profiles, *arguments, "--confidence", 0.95)
    assert_valid(result, problem)
    plan, certainty = Plan.from_dict(result), result["certainty"]
    assert certainty["probability"] == probability_in_time(problem, plan, 0.15)
    assert certainty["usual_probability"] < 0.95 <= certainty["probability"]
    assert certainty["usual_total_usd"] < plan.cost.total_usd
    text = words(run(profiles, *arguments, "--confidence", 0.95).stdout)
    assert "(asked for: 95 %)" in text
    assert f"Without the spread the plan costs ${certainty['usual_total_usd']:.4f}" in text
    price = result["cost"]["total_usd"] - certainty["usual_total_usd"]
    assert f"the price of certainty is ${price:.4f}" in text


def test_too_certain(profiles: Path) -> None:
    fastest_s = as_json(profiles, "--volume-gb", 100, "--deadline-s", 1, code=3)["fastest_s"]
    deadline_s = fastest_s * 1.01
    arguments = ("--volume-gb", 100, "--deadline-s", deadline_s, "--confidence", 0.999, "--json")
    result = run(profiles, *arguments, "--spread", 0.1, code=3)
    fastest_s = json.loads(result.stdout)["fastest_s"]
    assert fastest_s > deadline_s
    assert f"with probability 0.999; the fastest plan is done in {fastest_s:.6g}" in result.stderr
    assert json.loads(result.stdout)["binding"] in result.stderr
    # Every thousandth bandwidth is negative if the spread is a third.
    result = run(profiles, *arguments, "--spread", 0.5, code=3)
    assert "is not done with it in any time" in result.stderr
    assert json.loads(result.stdout)["fastest_s"] is None


@pytest.mark.parametrize("job", [BATCH, STREAM])
def test_running_plan_stays(profiles: Path, tmp_path: Path, job: tuple[object, ...]) -> None:
    running = tmp_path / "plan.json"
    before = as_json(profiles, *job, "--output", running)
    after = as_json(profiles, *job, "--running", running, "--tolerance", 0.02)
    assert after["stripes"] == before["stripes"]
    assert after["vms"] == before["vms"]
    assert after["replanning"]["outcome"] == "kept"
    assert after["replanning"]["changes"]["vms"] == {}
    text = words(run(profiles, *job, "--running", running).stdout)
    assert "Kept: 100.00% of the data on its tree, 100% of the VMs." in text
    assert "The running plan stays: it does what is asked, and costs at most 1.00% more" in text


def test_running_plan_changes(profiles: Path, tmp_path: Path) -> None:
    running = tmp_path / "plan.json"
    seconds = as_json(profiles, "--volume-gb", 100, "--output", running)["predicted_time_s"]
    slower = write_profiles(profiles, slower=0.6)
    arguments = ("--volume-gb", 100, "--deadline-s", seconds, "--running", running)
    after = as_json(slower, *arguments, "--output", running)
    network = load_network(str(slower))
    assert_valid(after, Problem(network, REGIONS[0], REGIONS[1:3], 100.0, seconds))
    replanning = after["replanning"]
    assert replanning["outcome"] in ("close", "new")
    assert f"and {seconds:g} s are allowed; the bandwidth from" in replanning["why"]
    assert replanning["changes"]["vms"]
    assert Plan.from_dict(json.loads(running.read_text())).vms == after["vms"]


def test_last_good_plan_stays(profiles: Path, tmp_path: Path) -> None:
    running = tmp_path / "plan.json"
    before = as_json(profiles, *BATCH, "--output", running)
    hurry = ("--volume-gb", 100, "--deadline-s", 5, "--running", running)
    result = run(profiles, *hurry, "--json", "--output", running, code=3)
    after = json.loads(result.stdout)
    assert after["replanning"]["outcome"] == "last good"
    assert Plan.from_dict(after) == Plan.from_dict(before)
    assert Plan.from_dict(json.loads(running.read_text())) == Plan.from_dict(before)
    assert "the fastest possible time is" in result.stderr
    assert "The running plan stays, and does not do what is asked (it would take" in result.stderr
    late = run(profiles, *BATCH, "--running", running, "--time-limit-s", 1e-9, code=3)
    assert "no plan was found within 1e-09 s" in late.stderr
    assert "The running plan stays, and does what is asked" in late.stderr


def test_stream_plan_from_a_file(profiles: Path, tmp_path: Path) -> None:
    running = tmp_path / "plan.json"
    written = as_json(profiles, *STREAM, "--output", running)
    assert StreamPlan.from_dict(json.loads(running.read_text())).to_dict() == written
    faster = ("--gb-per-s", 0.3, "--freshness-s", 0.5, "--latency-s", 0.05)
    assert as_json(profiles, *faster, "--running", running)["gb_per_s"] == 0.3
    assert (
        f"{running} is a plan for a stream"
        in run(profiles, *BATCH, "--running", running, code=2).stderr
    )
    running.write_text("[]")
    assert f"{running} is no plan" in run(profiles, *BATCH, "--running", running, code=2).stderr


@pytest.mark.parametrize(
    ("arguments", "messages"),
    [
        ((), ["neither of --volume-gb and --gb-per-s is given; give --volume-gb (and"]),
        ((*BATCH, "--gb-per-s", 1), ["both of --volume-gb and --gb-per-s are given"]),
        (
            (*BATCH, "--freshness-s", 1, "--load", 2, "--confidence", 0.9, "--time-limit-s", 1),
            [
                "plan: 4 problems",
                "--freshness-s is for --gb-per-s",
                "--load is for --gb-per-s",
                "--confidence is for --spread",
                "--time-limit-s is for --running",
            ],
        ),
        (
            ("--gb-per-s", -1, "--deadline-s", 1, "--frontier", "--stripes", 0),
            [
                "plan: 4 problems",
                "--deadline-s is for --volume-gb",
                "--frontier is for --volume-gb",
                "gb_per_s must be more than 0",
                "stripes must be from 1",
            ],
        ),
        (
            ("--volume-gb", 1, "--spread", -1, "--confidence", 1, "--compare"),
            [
                "plan: 4 problems",
                "--compare and --spread are different ways to plan",
                "--spread needs a deadline",
                "confidence must be from 0.5 and below 1, not 1.0",
                "spread must be finite and not negative",
            ],
        ),
    ],
)
def test_bad_combinations(
    profiles: Path, arguments: tuple[object, ...], messages: list[str]
) -> None:
    error = run(profiles, *arguments, code=2).stderr
    assert not [message for message in messages if message not in error], error


def test_locations_of_own_regions(profiles: Path, tmp_path: Path) -> None:
    picture = tmp_path / "plan.svg"
    (profiles / "locations.csv").write_text("region,latitude,longitude\naws:us-east-1,91,0\n")
    error = run(profiles, *BATCH, "--picture", picture, code=2).stderr
    assert "locations.csv, line 2: latitude must be from -90 to 90" in error
    (profiles / "locations.csv").write_text("region,latitude,longitude\naws:us-east-1,9,0\n")
    run(profiles, *BATCH, "--picture", picture)
    first = picture.read_bytes()
    run(profiles, *BATCH, "--picture", picture)
    assert picture.read_bytes() == first
