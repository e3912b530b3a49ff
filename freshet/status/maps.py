"""The map of each plan in force as SVG for the page, drawn once for each plan."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

from freshet.errors import FreshetError
from freshet.planner import load_network
from freshet.planner.drawing.picture import draw_plan
from freshet.planner.drawing.places import load_places
from freshet.planner.drawing.plan_map import REGION_GID
from freshet.planner.stream import StreamPlan
from freshet.report.figures import to_svg

_SVG = "http://www.w3.org/2000/svg"
_XLINK = "http://www.w3.org/1999/xlink"
_DROPPED = (f"{{{_SVG}}}metadata", f"{{{_SVG}}}style", ElementTree.Comment)
_REFERENCE = re.compile(r"(?:href=\"|url\()#([^\")]+)")


@dataclass(frozen=True)
class PlanMap:
    """A drawn plan."""

    svg: str
    """An element for a page; empty for a plan that only says which way, and not at what cost."""

    regions: tuple[str, ...]
    """That are on it."""


class PlanMaps:
    """Draws plans; drawing takes a while, so a plan that has not changed is not drawn again.

    Args:
        profiles: folder with prices, bandwidths and places of regions.
    """

    def __init__(self, profiles: str) -> None:
        self._profiles = profiles
        self._drawn: dict[str, tuple[str, PlanMap]] = {}
        # Matplotlib is not made for several threads.
        self._lock = threading.Lock()

    def maps(self, plans: Mapping[str, Mapping[str, Any]]) -> dict[str, PlanMap]:
        """The map of each table's plan.

        Args:
            plans: by table.
        """
        with self._lock:
            drawn = {}
            for table, plan in plans.items():
                text = json.dumps(plan, sort_keys=True)
                known = self._drawn.get(table)
                drawn[table] = (
                    known if known is not None and known[0] == text else (text, self._draw(plan))
                )
            self._drawn = drawn
        return {table: plan_map for table, (_, plan_map) in drawn.items()}

    def _draw(self, plan: Mapping[str, Any]) -> PlanMap:
        edges = [tuple(edge) for stripe in plan["stripes"] for edge in stripe["edges"]]
        regions = tuple(dict.fromkeys(region for edge in edges for region in edge))
        try:
            parsed = StreamPlan.from_dict(plan)
            network, places = load_network(self._profiles), load_places(self._profiles)
            svg = to_svg(draw_plan(parsed, network, places))
        except (KeyError, TypeError, ValueError, FreshetError):
            return PlanMap("", regions)  # of an early plan, or of regions that have no prices
        links = "; ".join(f"{source} to {target}" for source, target in dict.fromkeys(edges))
        return PlanMap(without_styles(svg, f"Map of the plan: {links}"), regions)


def without_styles(svg: str, label: str) -> str:
    """The picture without style sheets and style attributes, which the page's policy forbids.

    What they say is said by attributes of the elements instead. Labels of regions, which are drawn
    as shapes, get their text back as titles, and only what is referred to keeps its id: a page may
    have several maps.

    Args:
        svg: as matplotlib writes it.
        label: what is to be seen, for those who cannot.
    """
    ElementTree.register_namespace("", _SVG)
    ElementTree.register_namespace("xlink", _XLINK)
    with_comments = ElementTree.TreeBuilder(insert_comments=True)
    root = ElementTree.fromstring(svg, ElementTree.XMLParser(target=with_comments))
    root.set("stroke-linejoin", "round")
    root.set("stroke-linecap", "butt")
    kept = set(_REFERENCE.findall(svg))
    for parent in list(root.iter()):
        for name, value in _declarations(parent.attrib.pop("style", "")):
            parent.set(name, value)
        _name(parent, kept)
        for child in [each for each in parent if each.tag in _DROPPED]:
            parent.remove(child)
    root.set("role", "img")
    root.set("aria-label", label)
    return ElementTree.tostring(root, encoding="unicode")


def _name(element: ElementTree.Element, kept: Collection[str]) -> None:
    if element.get("id", "") in kept:
        return
    if element.attrib.pop("id", None) == REGION_GID:
        title = ElementTree.Element(f"{{{_SVG}}}title")
        # Matplotlib tells in a comment what each line of shapes reads.
        lines = [each.text or "" for each in element.iter(ElementTree.Comment)]  # type: ignore[arg-type]
        title.text = "\n".join(line.strip() for line in lines)
        element.insert(0, title)
        element.set("class", REGION_GID)


def _declarations(style: str) -> list[tuple[str, str]]:
    pairs = (part.partition(":") for part in style.split(";"))
    return [(name.strip(), value.strip()) for name, _, value in pairs if value.strip()]
