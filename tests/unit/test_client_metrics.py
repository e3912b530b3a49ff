"""The client's counters are those of docs/metrics.md, and in the format that Prometheus reads."""

from __future__ import annotations

import re
from pathlib import Path

from freshet.client_metrics import ReadCounters

ROOT = Path(__file__).parents[2]


def told(counters: ReadCounters) -> dict[str, float]:
    text = counters.to_prometheus({"delivered": 5, "lost": 1})
    samples = [line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#")]
    assert len(samples) == len({name for name, _ in samples}), "no sample twice"
    return {name: float(value) for name, value in samples}


def test_reads_are_counted_by_table_and_time() -> None:
    counters = ReadCounters("aws:eu-west-1")
    counters.answered("cpu", keys=100, missing=3, seconds=0.001)
    counters.answered("cpu", keys=1, missing=0, seconds=0.3)
    counters.answered("cpu", keys=1, missing=1, seconds=7.0)
    counters.failed("load")
    samples = told(counters)
    labels = 'table="cpu",region="aws:eu-west-1"'
    assert samples[f"freshet_client_keys_total{{{labels}}}"] == 102
    assert samples[f"freshet_client_keys_missing_total{{{labels}}}"] == 4
    assert samples[f"freshet_client_read_failures_total{{{labels}}}"] == 0
    bucket = f"freshet_client_read_seconds_bucket{{{labels},le="
    assert samples[f'{bucket}"0.0005"}}'] == 0
    assert samples[f'{bucket}"0.001"}}'] == 1
    assert samples[f'{bucket}"0.25"}}'] == 1
    assert samples[f'{bucket}"1.0"}}'] == 2
    assert samples[f'{bucket}"+Inf"}}'] == 3
    assert samples[f"freshet_client_read_seconds_count{{{labels}}}"] == 3
    assert samples[f"freshet_client_read_seconds_sum{{{labels}}}"] == 7.301
    other = 'table="load",region="aws:eu-west-1"'
    assert samples[f"freshet_client_read_failures_total{{{other}}}"] == 1
    assert samples['freshet_client_feedback_total{region="aws:eu-west-1"}'] == 5
    assert samples['freshet_client_feedback_lost_total{region="aws:eu-west-1"}'] == 1


def test_every_counter_is_documented() -> None:
    counters = ReadCounters("home")
    counters.answered("cpu", keys=1, missing=0, seconds=0.1)
    page = (ROOT / "docs/metrics.md").read_text("utf-8")
    documented = set(re.findall(r"`(freshet_client_\w+)`", page))
    assert {name.partition("{")[0] for name in told(counters)} == documented
