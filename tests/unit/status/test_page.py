"""The page: all figures of a snapshot, no markup of anybody else's, nothing that is loaded."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from freshet.status.columns import LINKS, REGIONS, TABLES
from freshet.status.maps import PlanMap, PlanMaps
from freshet.status.page import POLICY, render_page
from freshet.status.snapshot import SourceStatus
from tests.unit.status.snapshots import FAR, HOME, HOSTILE, NEAR, PLAN, TABLE, WAY, snapshot

PROFILES = Path(__file__).parents[3] / "examples" / "data" / "cloudcast"

COMPLETE = PLAN | {
    "source": HOME,
    "destinations": [NEAR, FAR],
    "gb_per_s": 0.001,
    "freshness_s": 2.0,
    "vms": {HOME: 1, WAY: 1, NEAR: 1, FAR: 1},
    "cost": {
        "egress_usd_per_h": 0.5,
        "instance_usd_per_h": 0.0,
        "total_usd_per_h": 0.5,
        "lower_bound_usd_per_h": 0.5,
        "gap": 0.0,
    },
    "paths": [
        {"stripe": 0, "destination": NEAR, "regions": [HOME, WAY, NEAR], "delay_s": 0.2},
        {"stripe": 0, "destination": FAR, "regions": [HOME, WAY, FAR], "delay_s": 0.3},
    ],
    "predicted_delay_s": 0.3,
    "capacity_gb_per_s": 0.1,
    "algorithm": "optimal",
    "solve_time_s": 0.1,
}
"""A plan as the multicast job reports it."""


class Reader(HTMLParser):
    """Elements, their attributes and the text of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.words = ""
        self.by_element: dict[str, list[str]] = {}
        self._open = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        self._open = tag
        self.by_element.setdefault(tag, []).append("")

    def handle_endtag(self, tag: str) -> None:
        self._open = ""

    def handle_data(self, data: str) -> None:
        self.words += data
        if self._open:
            self.by_element[self._open][-1] += data

    def of(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.elements if name == tag]


def page(**fields: object) -> str:
    snap = snapshot(**fields)
    return render_page(snap, {}, age_s=0.4, interval_s=2.0)


def test_every_figure_of_a_snapshot_is_on_it() -> None:
    words = Reader(page()).words
    for columns, rows in (
        (TABLES, snapshot().tables),
        (REGIONS, snapshot().regions),
        (LINKS, snapshot().links),
    ):
        for column in columns:
            assert column.name in words
            assert column.meaning in words, "told to those who see no title of a heading"
            for row in rows:
                assert column.cell(row).text.replace("\x1b", "�") in words  # type: ignore[arg-type]


def test_names_are_text_and_nothing_else() -> None:
    read = Reader(page())
    assert HOSTILE.replace("\x1b", "�") in read.words
    assert not read.of("img")
    assert not [a for _, a in read.elements if any(name.startswith("on") for name in a)]


def test_the_page_needs_nothing_else_and_its_policy_allows_nothing_else() -> None:
    read = Reader(page())
    for _, attributes in read.elements:
        assert "style" not in attributes, "the policy forbids it"
        assert attributes.get("src") is None
        assert attributes.get("href", "data:,") in ("data:,", "status.json")
    (script,), (style,) = read.by_element["script"], read.by_element["style"]
    for kind, content in (("script", script), ("style", style)):
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in POLICY
    assert "default-src 'none'" in POLICY
    assert "unsafe" not in POLICY


def test_tables_have_heads_and_captions() -> None:
    read = Reader(page())
    assert len(read.of("table")) == len(read.of("caption")) == 4
    assert {a["scope"] for a in read.of("th")} == {"row", "col"}
    assert read.of("html")[0]["lang"] == "en"
    ids = [a["id"] for _, a in read.elements if "id" in a]
    assert len(ids) == len(set(ids))


def test_what_is_old_or_wrong_is_told() -> None:
    assert "no newer ones come" not in page()
    old = render_page(snapshot(), {}, age_s=31.0, interval_s=2.0)
    assert "These figures are 31 s old" in old
    away = SourceStatus("Kafka", 12.0, "topic <b>progress</b> cannot be read")
    words = Reader(page(sources=(away,))).words
    assert "Kafka: topic <b>progress</b> cannot be read (what it last told is 12 s old)" in words


def test_nothing_is_known_before_anything_is() -> None:
    empty = page(tables=(), regions=(), links=(), plans={}, jobs=())
    assert empty.count("None is known.") == 4
    assert "No plan is in force." in empty


@pytest.fixture(scope="module")
def maps() -> PlanMaps:
    return PlanMaps(str(PROFILES))


def test_the_map_has_every_region_and_nothing_that_the_policy_forbids(maps: PlanMaps) -> None:
    drawn = maps.maps({TABLE: COMPLETE})
    shown = render_page(snapshot(), drawn, age_s=0.4, interval_s=2.0)
    svg = shown[shown.index("<svg") : shown.index("</svg>")]
    titles = re.findall(r"<title>([^<\n]+)", svg)
    assert sorted(titles) == sorted((HOME, WAY, NEAR, FAR)) == sorted(drawn[TABLE].regions)
    assert "style" not in svg
    assert f"{WAY} to {FAR}" in svg, "told to those who see no map"
    ids = re.findall(r'\bid="([^"]+)"', shown)
    assert len(ids) == len(set(ids))
    for reference in re.findall(r'(?:href="|url\()#([^)"]+)', svg):
        assert reference in ids


def test_a_plan_is_drawn_once(maps: PlanMaps) -> None:
    first = maps.maps({TABLE: COMPLETE})[TABLE]
    assert maps.maps({TABLE: dict(COMPLETE)})[TABLE] is first
    assert maps.maps({TABLE: COMPLETE | {"number": 8}})[TABLE] is not first


def test_a_plan_that_says_less_has_its_words_alone(maps: PlanMaps) -> None:
    assert maps.maps({TABLE: PLAN}) == {TABLE: PlanMap("", (HOME, WAY, NEAR, FAR))}
    unknown = COMPLETE | {"source": "local:nowhere"}
    assert maps.maps({TABLE: unknown})[TABLE].svg == ""
