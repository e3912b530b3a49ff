"""A scenario survives being written and read, and all that is wrong with one is told at once."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from freshet.errors import ConfigError, StackError
from freshet.wan.regions import Regions
from freshet.wan.scenario import (
    SERVER_KINDS,
    Fault,
    Kind,
    Link,
    Region,
    Role,
    Scenario,
    Server,
    load_scenario,
    scenario_from_mapping,
)
from freshet.wan.shape import Direction

HOME, AWAY, WAY = "aws:eu-west-1", "gcp:us-east1", "azure:uksouth"

EXAMPLE = f"""
regions:
  - {{name: {HOME}, role: home}}
  - {{name: {WAY}, role: waypoint}}
  - {{name: {AWAY}}}
links:
  - {{source: {HOME}, target: {AWAY}, bandwidth_bps: 1.0e+8, delay_ms: 40, jitter_ms: 2}}
  - {{source: {HOME}, target: {WAY}, delay_ms: 5, both_ways: true}}
faults:
  - {{kind: stall, start_s: 1, duration_s: 2, links: ["{HOME}->{AWAY}"], direction: backward}}
  - {{kind: kill, start_s: 2, duration_s: 1, region: {WAY}, server: broker}}
"""


def problems_of(mapping: object) -> list[str]:
    with pytest.raises(ConfigError) as raised:
        scenario_from_mapping(mapping)
    return raised.value.problems


@pytest.mark.parametrize("suffix", ["yaml", "json"])
def test_loads_a_file(tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"scenario.{suffix}"
    file.write_text(EXAMPLE if suffix == "yaml" else json.dumps(yaml.safe_load(EXAMPLE)))

    scenario = load_scenario(file)

    assert scenario.home == HOME
    assert scenario.regions[1] == Region(WAY, Role.WAYPOINT)
    assert [link.name for link in scenario.links] == [
        f"{HOME}->{AWAY}",
        f"{HOME}->{WAY}",
        f"{WAY}->{HOME}",
    ]
    assert scenario.links[0] == Link(HOME, AWAY, 1e8, 40, 2)
    stall, kill = scenario.faults
    assert stall == Fault(Kind.STALL, 1, 2, (f"{HOME}->{AWAY}",), direction=Direction.BACKWARD)
    assert kill == Fault(Kind.KILL, 2, 1, region=WAY, server=Server.BROKER)


NAMES = st.sampled_from([f"aws:region-{n}" for n in range(4)])
SECONDS = st.floats(0, 1e6).map(lambda s: round(s, 3))
MILLISECONDS = st.floats(0, 1e4).map(lambda ms: round(ms, 3))
BANDWIDTHS = st.none() | st.floats(1, 1e11)


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    """Any scenario; its faults follow one another."""
    names = draw(st.lists(NAMES, min_size=2, unique=True))
    roles = st.sampled_from([Role.DESTINATION, Role.WAYPOINT])
    regions = [Region(name, draw(roles) if name != names[0] else Role.HOME) for name in names]
    pairs = draw(
        st.lists(st.sampled_from(list(itertools.permutations(names, 2))), min_size=1, unique=True)
    )
    links = [
        Link(*pair, draw(BANDWIDTHS), draw(MILLISECONDS), draw(MILLISECONDS)) for pair in pairs
    ]
    faults: list[Fault] = []
    for kind in draw(st.lists(st.sampled_from(list(Kind)), max_size=4)):
        start_s = faults[-1].end_s if faults else draw(SECONDS)
        duration_s = 0.0 if kind is Kind.RESET else draw(SECONDS)
        if kind in SERVER_KINDS:
            region = draw(st.sampled_from(names))
            fault = Fault(kind, start_s, duration_s, region=region, server=Server.BROKER)
        elif kind is Kind.SLOW:
            fault = Fault(
                kind, start_s, duration_s, region=names[0], bandwidth_bps=draw(BANDWIDTHS)
            )
        else:
            chosen = draw(st.lists(st.sampled_from(links), min_size=1, unique=True))
            fault = Fault(
                kind,
                start_s,
                duration_s,
                tuple(link.name for link in chosen),
                direction=draw(st.sampled_from(list(Direction))),
            )
        faults.append(fault)
    return Scenario(tuple(regions), tuple(links), tuple(faults))


@given(scenarios())
def test_what_is_written_is_read_again(scenario: Scenario) -> None:
    as_json = json.dumps(scenario.to_dict())
    assert scenario_from_mapping(json.loads(as_json)) == scenario
    as_yaml = yaml.safe_dump(json.loads(as_json))
    assert scenario_from_mapping(yaml.safe_load(as_yaml)) == scenario


def test_all_problems_of_the_form_are_told_at_once() -> None:
    assert problems_of(
        {
            "regions": [{"name": HOME, "role": "house"}, {"role": "home"}, 3],
            "links": {"source": HOME},
            "faults": [{"kind": "stal", "start": 1}],
            "region": [],
        }
    ) == [
        "unknown field 'region'; did you mean 'regions'?",
        "regions[0].role 'house' is unknown; did you mean 'home'?",
        "regions[1].name is missing",
        "regions[2] must be a mapping, not 3",
        f"links must be a list, not {{'source': '{HOME}'}}",
        "faults[0]: unknown field 'start'; did you mean 'start_s'?",
        "faults[0].kind 'stal' is unknown; did you mean 'stall'?",
    ]
    assert problems_of([]) == ["must be a mapping with regions and links"]


def test_all_problems_of_the_content_are_told_at_once() -> None:
    with pytest.raises(ConfigError) as raised:
        Scenario(
            (Region(HOME), Region("nowhere"), Region(WAY, Role.WAYPOINT), Region(WAY)),
            (Link(HOME, HOME), Link(HOME, "x:y"), Link(HOME, WAY, 0), Link(HOME, WAY, delay_ms=-1)),
            (
                Fault(Kind.STALL, -1),
                Fault(Kind.RESET, 0, 5, (f"{HOME}->{AWAY}",)),
                Fault(Kind.KILL, region=WAY),
                Fault(Kind.EMPTY, region=WAY, server=Server.REDIS),
                Fault(Kind.CUT, region="x:y", delay_ms=3),
                Fault(Kind.CUT, region=HOME, direction=Direction.FORWARD, server=Server.REDIS),
            ),
        )
    told = "\n".join(raised.value.problems)
    for expected in (
        "region 'nowhere' is not provider:region",
        f"region {WAY} is there twice",
        "one region must have the role home, not none",
        f"links[0] leads from {HOME} to itself",
        "links[1].target 'x:y' is unknown",
        "links[2].bandwidth_bps must be above 0",
        f"links[3]: there is a link {HOME}->{WAY} already",
        "links[3].delay_ms must be from 0",
        "faults[0].start_s must be at least 0, not -1",
        "faults[0] must have either links or a region",
        "faults[1].duration_s: a reset has none; use a cut",
        f"faults[1]: there is no link '{HOME}->{AWAY}'",
        "faults[2]: a kill needs a region and a server",
        f"faults[3]: {WAY} is a waypoint, which has no Redis",
        "faults[4].region 'x:y' is unknown",
        "faults[4]: a cut has no bandwidth or delay; a slow link has",
        "faults[5]: a cut befalls links; use kill or empty for a server",
        "faults[5]: the direction is one of links; name them instead of the region",
    ):
        assert expected in told


def test_faults_that_would_end_each_other_are_refused() -> None:
    regions = (Region(HOME, Role.HOME), Region(AWAY))
    links = (Link(HOME, AWAY), Link(AWAY, HOME))
    there, back = (link.name for link in links)
    first = Fault(Kind.STALL, 1, 2, (there,))

    with pytest.raises(ConfigError, match=r"faults\[0\] and faults\[1\] overlap"):
        Scenario(regions, links, (first, Fault(Kind.STALL, 2, 2, region=AWAY)))
    # One after the other, another link, another kind, another direction.
    Scenario(regions, links, (first, Fault(Kind.STALL, 3, 2, (there,))))
    Scenario(regions, links, (first, Fault(Kind.STALL, 2, 2, (back,))))
    Scenario(regions, links, (first, Fault(Kind.CUT, 2, 2, (there,))))


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="can't be read"):
        load_scenario(tmp_path / "absent.yaml")
    (tmp_path / "broken.yaml").write_text("regions: [")
    with pytest.raises(ConfigError, match=r"broken\.yaml.* is no YAML"):
        load_scenario(tmp_path / "broken.yaml")


def test_a_region_without_features_has_no_redis(tmp_path: Path) -> None:
    regions = Regions(tmp_path, scenario_from_mapping(yaml.safe_load(EXAMPLE)))
    assert regions.addresses(HOME, WAY).redis_url is None
    assert regions.addresses(HOME, AWAY).redis_url is not None
    with pytest.raises(StackError, match=f"{WAY} is a waypoint and has no Redis"):
        _ = regions[WAY].redis
