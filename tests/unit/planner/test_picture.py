"""Goal: a plan's picture shows all of it, and can be read.

Method: plans for up to ten destinations are drawn, and the figure's texts and lines are looked at
as the renderer places them.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from freshet.planner import Network, Plan, Problem, make_plan
from freshet.planner.drawing.layout import apart, lay_out
from freshet.planner.drawing.picture import draw_plan
from freshet.planner.drawing.places import Place, load_places, place_of
from freshet.planner.drawing.plan_map import NUMBER_GID, REGION_GID
from freshet.planner.optimal.planner import fastest_possible
from tests.unit.planner.networks import CLOUDS, clouds

PLACES = load_places(str(CLOUDS))

BETWEEN_CLOUDS = (
    "aws:us-east-1",
    (
        "gcp:us-east4-a",
        "azure:eastus",
        "aws:eu-west-1",
        "azure:northeurope",
        "gcp:europe-west4-a",
        "azure:koreacentral",
        "gcp:asia-northeast3-a",
        "aws:ap-northeast-1",
        "azure:brazilsouth",
        "gcp:australia-southeast1-a",
    ),
)
WITHIN_AWS = (
    "aws:us-west-2",
    (
        "aws:us-east-1",
        "aws:eu-west-1",
        "aws:eu-central-1",
        "aws:eu-south-1",
        "aws:ap-northeast-1",
        "aws:ap-southeast-1",
        "aws:sa-east-1",
        "aws:af-south-1",
        "aws:me-south-1",
        "aws:ap-south-1",
    ),
)


def planned(ends: tuple[str, tuple[str, ...]], looseness: float = 1.5) -> Plan:
    problem = Problem(clouds(5), *ends, 300.0)
    return make_plan(problem.with_deadline(fastest_possible(problem).seconds * looseness))


def shown(plan: Plan, places: dict[str, Place]) -> Axes:
    """The only axes of the plan's picture."""
    return draw_plan(plan, clouds(5), places).axes[0]


def texts(axes: Axes, gid: str) -> list[Text]:
    return [text for text in axes.texts if text.get_gid() == gid]


def boxes(labels: list[Text]) -> list[Bbox]:
    """Of the texts alone, without their frames."""
    for label in labels:
        label.set_bbox(None)
    return [label.get_window_extent() for label in labels]


def assert_complete(axes: Axes, plan: Plan) -> None:
    """Fails unless all regions are named, and all links drawn and told in the table."""
    edges = {edge for stripe in plan.stripes for edge in stripe.edges}
    named = {text.get_text().partition("\n")[0] for text in texts(axes, REGION_GID)}
    assert named == {region for edge in edges for region in edge}
    assert {line.get_gid() for line in axes.lines} >= {f"{u} > {v}" for u, v in edges}
    rows = {text.get_text() for text in axes.texts}
    assert rows >= {f"{u} → {v}" for u, v in edges}


def assert_readable(axes: Axes) -> None:
    """Fails where labels and numbers cover each other or leave the picture."""
    found = boxes([*texts(axes, REGION_GID), *texts(axes, NUMBER_GID)])
    pairs = itertools.combinations(found, 2)
    assert not [(a, b) for a, b in pairs if Bbox.intersection(a.padded(-0.5), b.padded(-0.5))]
    room = axes.get_window_extent().padded(0.5)
    assert all(room.contains(b.x0, b.y0) and room.contains(b.x1, b.y1) for b in found)


@pytest.mark.parametrize(
    ("ends", "count"), [(BETWEEN_CLOUDS, 4), (WITHIN_AWS, 6), (BETWEEN_CLOUDS, 10)]
)
def test_all_is_shown_and_labels_are_apart(ends: tuple[str, tuple[str, ...]], count: int) -> None:
    plan = planned((ends[0], ends[1][:count]))
    axes = shown(plan, dict(PLACES))
    assert_complete(axes, plan)
    assert_readable(axes)
    numbers = texts(axes, NUMBER_GID)
    links = {edge for stripe in plan.stripes for edge in stripe.edges}
    assert {int(number.get_text()) for number in numbers} == set(range(1, len(links) + 1))


@pytest.mark.parametrize("known", ["none", "aws"])
def test_regions_that_nobody_knows(known: str) -> None:
    plan = planned(BETWEEN_CLOUDS)
    places = {name: place for name, place in PLACES.items() if name.startswith(known)}
    axes = shown(plan, places)
    assert_complete(axes, plan)
    assert_readable(axes)


def test_plan_whose_region_has_vanished() -> None:
    """The last good plan is drawn, too: what a link costs and carries is not known any more."""
    plan = planned((WITHIN_AWS[0], WITHIN_AWS[1][:2]))
    gone = plan.stripes[0].edges[-1][1]
    network = clouds(5)
    left = [number for number, region in enumerate(network.regions) if region != gone]
    smaller = Network(
        tuple(network.regions[number] for number in left),
        network.price_usd_per_gb[np.ix_(left, left)],
        network.bandwidth_bps[np.ix_(left, left)],
        tuple(network.limits[number] for number in left),
    )
    axes = draw_plan(plan, smaller, dict(PLACES)).axes[0]
    assert_complete(axes, plan)
    links = {edge for stripe in plan.stripes for edge in stripe.edges}
    unknown = [text for text in axes.texts if text.get_text() == "?"]
    assert len(unknown) == 2 * sum(gone in link for link in links)


def test_many_trees_are_not_told_apart() -> None:
    plan = planned(WITHIN_AWS, 1.02)
    trees = {stripe.edges for stripe in plan.stripes}
    assert len(trees) > 8, "this test needs a plan of many trees"
    axes = shown(plan, dict(PLACES))
    assert_complete(axes, plan)
    assert_readable(axes)
    rest = [text.get_text() for text in axes.texts if "smaller trees" in text.get_text()]
    assert len(rest) == 1
    assert rest[0].startswith(f"{len(trees) - 8} smaller trees: ")


def test_places() -> None:
    assert not [region for region in clouds().regions if place_of(region, PLACES) is None]
    assert place_of("gcp:us-east4-c", PLACES) == place_of("gcp:us-east4-a", PLACES)
    assert place_of("own:cellar", PLACES) is None


def test_map_begins_where_nothing_is() -> None:
    """From Tokyo to Oregon the map goes over the Pacific: 101 degrees, and not 259."""
    layout = lay_out({"aws:ap-northeast-1": 0, "aws:us-west-2": 1}, PLACES, 1000.0)
    tokyo, oregon = layout.positions["aws:ap-northeast-1"], layout.positions["aws:us-west-2"]
    assert layout.projection is not None
    assert tokyo[0] < oregon[0]
    assert (oregon[0] - tokyo[0]) / layout.projection.points_per_degree == pytest.approx(
        100.6, abs=0.1
    )


def test_regions_of_one_city_are_moved_apart() -> None:
    moved = apart(np.full((5, 2), 150.0), 20.0, 300.0, 300.0)
    gaps = [np.hypot(*(a - b)) for a, b in itertools.combinations(moved, 2)]
    assert min(gaps) >= 19.0
    assert np.hypot(*(moved - 150.0).T).max() < 40.0
