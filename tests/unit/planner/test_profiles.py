"""Goal: profiles are read as they are meant, and everything that is wrong is said at once."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from freshet.errors import ConfigError, FreshetError
from freshet.planner import Problem, load_network
from tests.unit.planner.networks import clouds

PAIRS = [("a:x", "a:y"), ("a:x", "b:z"), ("a:y", "a:x"), ("a:y", "b:z"), ("b:z", "a:x")]
LAST = ("b:z", "a:y")


def write_profiles(
    folder: Path,
    *,
    prices: list[str] | None = None,
    rates: list[str] | None = None,
    limits: object = None,
) -> str:
    """Writes profiles of three regions, with some lines in place of the last."""
    lines = [f"{u},{v},0.02" for u, v in PAIRS] + (prices or [f"{LAST[0]},{LAST[1]},0.03"])
    (folder / "cost.csv").write_text("\n".join(["src,dest,cost", *lines]))
    lines = [f"{u},{v},5e9" for u, v in PAIRS] + (rates or [f"{LAST[0]},{LAST[1]},1e9"])
    header = "src_region,dst_region,throughput_sent"
    (folder / "throughput.csv").write_text("\n".join([header, *lines]))
    (folder / "limits.json").write_text(json.dumps(limits or {"default": {"usd_per_hour": 0.36}}))
    return str(folder)


def test_shipped_profiles() -> None:
    network = clouds()
    assert len(network.regions) == 71
    assert network.links.sum() == 71 * 70
    aws = network.limits[network.index["aws:us-east-1"]]
    assert (aws.egress_bps, aws.ingress_bps, aws.max_vms) == (5e9, 10e9, 2)
    assert aws.usd_per_s == pytest.approx(0.54 / 3600)


def test_limits_from_general_to_specific(tmp_path: Path) -> None:
    limits = {
        "default": {"usd_per_hour": 0.36, "max_vms": 4},
        "a": {"egress_gbps": 5, "ingress_gbps": 10},
        "a:y": {"egress_gbps": None, "max_vms": 9, "min_vms": 2},
    }
    network = load_network(write_profiles(tmp_path, limits=limits), max_vms=6)
    x, y, z = network.limits
    assert (x.egress_bps, x.ingress_bps, x.max_vms, x.min_vms) == (5e9, 10e9, 4, 1)
    assert (y.egress_bps, y.ingress_bps, y.max_vms, y.min_vms) == (math.inf, 10e9, 6, 2)
    assert z.egress_bps == math.inf
    assert z.usd_per_s == pytest.approx(0.0001)


def test_all_problems_at_once(tmp_path: Path) -> None:
    folder = write_profiles(
        tmp_path,
        prices=["b:z,a:y,-1", "b:z,a:y,0.1"],
        rates=["b:z,a:yy,fast"],
        limits={"aa": {"egress_gbps": 0, "ingres_gbps": 3, "max_vms": -1}},
    )
    with pytest.raises(ConfigError) as raised:
        load_network(folder)
    text = "\n".join(raised.value.problems)
    for part in (
        "cost.csv, line 7: cost must be finite and not negative, not -1",
        "cost.csv, line 8: the pair b:z, a:y is given twice",
        "throughput.csv, line 7: throughput_sent must be a number, not 'fast'",
        "throughput.csv: region 'a:yy' has no price; did you mean 'a:y'?",
        "throughput.csv: the pair b:z, a:y is missing",
        "region or provider 'aa' is unknown; did you mean 'a'?",
        "egress_gbps must be more than 0, not 0",
        "unknown field 'ingres_gbps'; did you mean 'ingress_gbps'?",
        "max_vms must be an integer from 0 to 10000, not -1",
    ):
        assert part in text


def test_missing_column_and_file(tmp_path: Path) -> None:
    folder = write_profiles(tmp_path)
    (tmp_path / "cost.csv").write_text("from,dest,cost\na:x,a:y,1\n")
    with pytest.raises(ConfigError, match=r"has no column src; it needs src,dest,cost"):
        load_network(folder)
    (tmp_path / "cost.csv").unlink()
    with pytest.raises(FreshetError, match=r"cost\.csv can't be read"):
        load_network(folder)


def test_problem_names_what_is_wrong() -> None:
    with pytest.raises(ConfigError) as raised:
        Problem(clouds(), "aws:us-east1", ("aws:us-west-2", "aws:us-west-2"), -1.0, 0.0, 0)
    assert raised.value.problems == [
        "source 'aws:us-east1' is unknown; did you mean 'aws:us-east-1'?",
        "destination 'aws:us-west-2' is given twice",
        "volume_gb must be more than 0, not -1.0",
        "deadline_s must be more than 0, not 0.0",
        "stripes must be from 1 to 1000, not 0",
    ]
