"""Goal: a table definition is checked as a whole, and says exactly what the job will do."""

from __future__ import annotations

import json
import textwrap
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import pytest
import yaml

from freshet import (
    Aggregate,
    ConfigError,
    Duration,
    EventTimeStep,
    FeatureTable,
    OnDemand,
    Points,
    Rate,
    Source,
    STLDecomposition,
    TimeShare,
    load_table,
)
from freshet.functions.isolation import IsolatedFunction
from freshet.functions.protocol import Status, pack_request, unpack_response
from freshet.functions.serialization import dump_function
from freshet.functions.window import Window
from freshet.table import table_from_mapping
from freshet.values import decode_payload

EXAMPLES = Path(__file__).parents[3] / "examples"


def make_table(**changes: Any) -> FeatureTable:
    return FeatureTable(**{"name": "t", "function": Aggregate(), "window": Points(10), **changes})


def problems_of(**changes: Any) -> list[str]:
    with pytest.raises(ConfigError) as error:
        make_table(**changes)
    return error.value.problems


def test_to_dict_is_the_contract_with_the_java_side() -> None:
    table = FeatureTable(
        name="cpu_stl",
        function=STLDecomposition(period=288),
        window=Points(864),
        budget=EventTimeStep(updates=1.29, step="1h"),
        ttl=timedelta(days=1),
        idle_timeout=None,
    )
    expected = {
        "table": "cpu_stl",
        "origin": 1,
        "source": {
            "topic": "p.events.cpu_stl",
            "key": "key",
            "timestamp": "ts",
            "value": "value",
            "id": None,
            "kind": "scalar",
            "max_event_bytes": 1048576,
        },
        "feedback_topic": "p.feedback.cpu_stl",
        "changes_topic": "p.changes.cpu_stl",
        "dead_letters_topic": "p.dead-letters.cpu_stl",
        "progress_topic": "p.progress",
        "window": {"points": 864},
        "min_points": 864,
        "policy": "regret-proportional",
        "policy_seed": 0,
        "default_regret": 1e-6,
        "max_regret": 1e12,
        "missing_regret": None,
        "keep_versions": 1,
        "on_demand": None,
        "budget": {
            "kind": "event-time-step",
            "updates_per_step": 1.29,
            "step_ms": 3600000,
            "initial_updates": 0.0,
        },
        "freshness_slo_ms": 300000,
        "regions": ["local:home"],
        "priority_weight": 1.0,
        "ttl_ms": 86400000,
        "out_of_orderness_ms": 0,
        "idle_timeout_ms": None,
        "max_future_ms": 86400000,
        "function_timeout_ms": 30000,
        "bundle_target_ms": 50,
        "bundle_max_keys": 256,
        "max_value_bytes": 1048576,
        "parallelism": 1,
        "max_parallelism": 128,
    }
    assert json.loads(json.dumps(table.to_dict(topic_prefix="p."))) == expected


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ({"window": Duration("3d")}, {"window": {"duration_ms": 259200000}, "min_points": 1}),
        ({"budget": TimeShare(0.25)}, {"budget": {"kind": "time-share", "share": 0.25}}),
        (
            {"budget": Rate(10)},
            {"budget": {"kind": "rate", "updates_per_second": 10.0, "burst": None}},
        ),
        (
            {"budget": Rate(10, burst=100)},
            {"budget": {"kind": "rate", "updates_per_second": 10.0, "burst": 100.0}},
        ),
        ({"min_points": 7}, {"min_points": 7}),
        ({"policy": "random", "policy_seed": -5}, {"policy": "random", "policy_seed": -5}),
        ({"missing_regret": 0}, {"missing_regret": 0.0}),
        ({"keep_versions": 8}, {"keep_versions": 8}),
        (
            {"on_demand": OnDemand(max_staleness="5m")},
            {"on_demand": {"max_staleness_ms": 300000, "max_wait_ms": 500}},
        ),
        ({"feedback_topic": "mine"}, {"feedback_topic": "p.mine"}),
        ({"regions": ["a:b", "c:d"]}, {"regions": ["a:b", "c:d"]}),
        ({"priority_weight": 3}, {"priority_weight": 3.0}),
    ],
)
def test_to_dict_of_single_fields(part: dict[str, Any], expected: dict[str, Any]) -> None:
    definition = make_table(**part).to_dict(topic_prefix="p.")
    assert {name: definition[name] for name in expected} == expected


def test_every_problem_is_reported_at_once() -> None:
    problems = problems_of(
        name="a b",
        function=STLDecomposition(period=1, seasonal=4),
        window=Points(0),
        source=Source(topic="no/topic", key="ts", kind="vectr"),  # type: ignore[arg-type]
        policy="regret-proportinal",
        budget=TimeShare(2),
        freshness_slo=5,
        ttl="3x",
        regions=["home", "a:b", "a:b"],
        parallelism=500,
        origin=-1,
        default_regret=float("nan"),
    )
    for part in (
        "name must be",
        "window.points must be an integer from 1",
        "source.topic must be a topic name",
        "source.timestamp and source.key name one field, 'ts'",
        "source.kind 'vectr' is unknown; did you mean 'vector'?",
        "did you mean 'regret-proportional'?",
        "budget.share must be above 0 and at most 1, not 2",
        "freshness_slo: 5 is no duration; write it with a unit",
        "ttl: '3x' is no duration",
        "regions has 'home'",
        "names a region twice",
        "parallelism must be an integer from 1 to 128, not 500",
        "origin must be an integer",
        "default_regret must be above 0",
        "function.period must be",
        "function.seasonal must be",
    ):
        assert any(part in problem for problem in problems), (part, problems)
    assert len(problems) == 16 + 1, problems  # + STL's objection to the kind of the source


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"function": Aggregate}, "is the class Aggregate; pass an instance, such as Aggregate()"),
        ({"function": "stl"}, "must be a FeatureFunction"),
        ({"window": 864}, "window must be Points(864) or Duration('3d')"),
        ({"function": STLDecomposition(288), "window": Points(300)}, "at least Points(576)"),
        ({"min_points": 11}, "min_points is 11, and the window holds 10 points"),
        ({"default_regret": 2.0, "max_regret": 1.0}, "default_regret 2 is above max_regret 1"),
        ({"feedback_topic": "events.t"}, "are one topic, 'events.t'"),
        ({"source": Source(kind="json")}, "Aggregate needs a source of kind scalar or vector"),
        ({"parallelism": True}, "parallelism must be an integer"),
        ({"max_value_bytes": 1 << 40}, "max_value_bytes"),
        ({"policy_seed": 1 << 63}, "policy_seed must be an integer"),
        ({"missing_regret": -1.0}, "missing_regret must be at least 0, not -1.0"),
        ({"keep_versions": 0}, "keep_versions must be an integer from 1 to 8, not 0"),
        ({"keep_versions": 9}, "keep_versions must be an integer from 1 to 8, not 9"),
        ({"on_demand": OnDemand("soon")}, "on_demand.max_staleness: 'soon' is no duration"),
        ({"on_demand": OnDemand("1s", "0s")}, "on_demand.max_wait must be at least 1 ms"),
        ({"budget": Rate(1, burst=0)}, "budget.burst must be at least 1, not 0"),
        ({"on_demand": True}, "on_demand must be OnDemand(max_staleness='5m') or None, not True"),
        ({"on_demand": OnDemand("1s"), "policy": "fifo"}, "'fifo' computes every event"),
    ],
)
def test_single_problems(changes: dict[str, Any], problem: str) -> None:
    problems = problems_of(**changes)
    assert len(problems) == 1, problems
    assert problem in problems[0]


def test_the_examples_in_python_and_yaml_agree() -> None:
    assert load_table(EXAMPLES / "cpu_stl.py") == load_table(EXAMPLES / "cpu_stl.yaml")
    for path in EXAMPLES.glob("*.py"):
        load_table(path)


def test_yaml_reports_every_problem_at_once() -> None:
    with pytest.raises(ConfigError) as error:
        table_from_mapping(
            {
                "nam": "x",
                "polcy": "fifo",
                "function": {"name": "stl", "perod": 3},
                "window": {"points": "many"},
                "budget": {"kind": "rat"},
                "source": {"topc": "x"},
                "ttl": "5",
            }
        )
    expected = (
        "unknown field 'nam'; did you mean 'name'?",
        "unknown field 'polcy'; did you mean 'policy'?",
        "name is missing",
        "function: unknown field 'perod'; did you mean 'period'?",
        "function.period is missing",
        "budget.kind 'rat' is unknown; did you mean 'rate'?",
        "source: unknown field 'topc'; did you mean 'topic'?",
        "window.points must be an integer",
        "ttl: '5' is no duration",
    )
    for part in expected:
        assert any(part in problem for problem in error.value.problems), part
    assert len(error.value.problems) == len(expected), error.value.problems


def test_yaml_has_every_part_with_its_defaults() -> None:
    parsed = yaml.safe_load(
        """
        name: parts
        function: aggregate
        window: {duration: 3d}
        policy: random
        policy_seed: 4
        missing_regret: 0.5
        keep_versions: 4
        on_demand: {max_staleness: 5m}
        budget: {kind: event-time-step, updates: 1.29, step: 1h}
        """
    )
    assert table_from_mapping(parsed) == FeatureTable(
        name="parts",
        function=Aggregate(),
        window=Duration("3d"),
        policy="random",
        policy_seed=4,
        missing_regret=0.5,
        keep_versions=4,
        on_demand=OnDemand(max_staleness="5m", max_wait="500ms"),
        budget=EventTimeStep(updates=1.29, step="1h", initial_updates=0),
    )
    for text, problem in (
        ("5m", "on_demand must be a mapping such as {max_staleness: 5m, max_wait: 500ms}"),
        ({"max_staleness": "5m", "wait": "1s"}, "on_demand: unknown field 'wait'"),
    ):
        with pytest.raises(ConfigError) as error:
            table_from_mapping({**parsed, "on_demand": text})
        assert len(error.value.problems) == 1
        assert problem in error.value.problems[0]


@pytest.mark.parametrize(
    ("suffix", "text", "problem"),
    [
        ("py", "x = 1", "makes no FeatureTable"),
        ("py", "1 / 0", "line 1: ZeroDivisionError"),
        ("py", "x = (", "line 1: SyntaxError"),
        ("py", "\nimport left_pad_of_nobody", "line 2: ModuleNotFoundError"),
        ("yaml", "a: [", "is no YAML"),
        ("yaml", "just text", "must be a mapping"),
        ("yaml", "function: nobody", "function 'nobody' is unknown"),
        ("yaml", "function: nobody:Class", "can't be imported"),
        ("yaml", "function: json:JSONDecoder", "is no subclass of freshet.FeatureFunction"),
        ("toml", "a = 1", ".toml is unknown; use .py or .yaml"),
    ],
)
def test_files_that_are_no_definition(tmp_path: Path, suffix: str, text: str, problem: str) -> None:
    path = tmp_path / f"broken.{suffix}"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"broken\.") as error:
        load_table(path)
    assert any(problem in p for p in error.value.problems), error.value.problems


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="can't be read"):
        load_table(tmp_path / "missing.yaml")


def test_several_tables_in_a_file_need_a_name(tmp_path: Path) -> None:
    text = textwrap.dedent("""
        from freshet import Aggregate, FeatureTable, Points
        first = FeatureTable(name="first", function=Aggregate(), window=Points(3))
        again = first
        """)
    path = tmp_path / "tables.py"
    path.write_text(text)
    assert load_table(path).name == "first"
    second = 'FeatureTable(name="second", function=Aggregate(), window=Points(3))\n'
    path.write_text(f"{text}second = {second}")
    with pytest.raises(ConfigError, match="makes 2 tables: first, second"):
        load_table(path)
    path.write_text(f"{text}table = {second}")
    assert load_table(path).name == "second"


HELPER = """
from dataclasses import dataclass
from freshet import FeatureFunction

def double(x):
    return 2 * x

@dataclass
class Doubled(FeatureFunction):
    offset: float = 0.0

    def compute(self, window):
        return [double(float(window.values[-1])) + self.offset]
"""


@pytest.mark.parametrize("suffix", ["py", "yaml"])
def test_a_users_function_runs_where_its_module_is_not(tmp_path: Path, suffix: str) -> None:
    helper = f"helper_of_{suffix}"
    (tmp_path / f"{helper}.py").write_text(HELPER)
    path = tmp_path / f"mine.{suffix}"
    if suffix == "py":
        path.write_text(
            f"from freshet import FeatureTable, Points\nfrom {helper} import Doubled\n"
            "t = FeatureTable(name='mine', function=Doubled(offset=1), window=Points(3))\n"
        )
    else:
        function = {"name": f"{helper}:Doubled", "offset": 1}
        path.write_text(
            yaml.safe_dump({"name": "mine", "function": function, "window": {"points": 3}})
        )
    pickled = dump_function(load_table(path).function)
    for file in tmp_path.iterdir():
        file.unlink()
    with IsolatedFunction(pickled, timeout_s=5) as function:
        window = Window("k", np.arange(2), np.array([1.0, 4.0]), 1)
        (item,) = unpack_response(function.call(pack_request([(b"", window)])))
    assert item.status == Status.OK, item.failure
    assert list(decode_payload(item.encoding, item.payload)) == [9.0]


def test_what_can_not_be_pickled_is_refused_at_submission() -> None:
    class Holds(Aggregate):
        def __init__(self) -> None:
            object.__setattr__(self, "lock", threading.Lock())

    with pytest.raises(TypeError, match=r"can't be pickled.*prepare\(\)"):
        dump_function(Holds())
    with pytest.raises(TypeError, match="no FeatureFunction"):
        dump_function(42)  # type: ignore[arg-type]
    assert cloudpickle.loads(dump_function(Aggregate())) == Aggregate()
