"""What a table's plan follows from at one moment, and what of it has changed since another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from freshet.multicast.settings import Link, PlannedTable, PlannerSettings, Thresholds


@dataclass(frozen=True)
class Conditions:
    """The state of the world for one table."""

    destinations: tuple[str, ...]
    """Those that a plan can reach."""

    detached: tuple[str, ...]
    """Those that do not answer, or to which no way is left."""

    gone: frozenset[str]
    """Regions that do not answer, destinations or not."""

    usable_bps: Mapping[Link, float]
    """Of links between regions that answer; those that are down are left out."""

    bytes_per_s: float
    """Volume."""


def conditions(
    settings: PlannerSettings,
    table: PlannedTable,
    gone: frozenset[str],
    usable_bps: Mapping[Link, float],
    bytes_per_s: float,
) -> Conditions:
    """What a table's plan follows from now.

    Args:
        settings: of the planner.
        table: to plan for.
        gone: regions that do not answer.
        usable_bps: of every link, 0 for those that are down.
        bytes_per_s: the table's volume.
    """
    usable = {
        link: bps
        for link, bps in usable_bps.items()
        if bps > 0 and link[0] not in gone and link[1] not in gone
    }
    reached = reachable(settings.home, usable)
    return Conditions(
        destinations=tuple(region for region in table.destinations if region in reached),
        detached=tuple(region for region in table.destinations if region not in reached),
        gone=gone,
        usable_bps=usable,
        bytes_per_s=max(bytes_per_s, settings.thresholds.bytes_per_s_min),
    )


def reachable(source: str, links: Iterable[Link]) -> set[str]:
    """Regions that some path leads to, the source included."""
    following: dict[str, list[str]] = {}
    for u, v in links:
        following.setdefault(u, []).append(v)
    reached, waiting = {source}, [source]
    while waiting:
        for region in following.get(waiting.pop(), ()):
            if region not in reached:
                reached.add(region)
                waiting.append(region)
    return reached


def differences(before: Conditions, now: Conditions, thresholds: Thresholds) -> list[str]:
    """What has changed so much that the plan should be made anew; empty if nothing has."""
    found = [f"{region} does not answer" for region in sorted(now.gone - before.gone)]
    found += [f"{region} is back" for region in sorted(before.gone - now.gone)]
    found += _link_differences(before, now, thresholds.speed_factor)
    if is_apart(before.bytes_per_s, now.bytes_per_s, thresholds.volume_factor):
        found.append(
            f"the volume went from {before.bytes_per_s:.4g} to {now.bytes_per_s:.4g} bytes/s"
        )
    return found


def _link_differences(before: Conditions, now: Conditions, factor: float) -> list[str]:
    found = []
    moved = before.gone ^ now.gone
    for link in sorted({*before.usable_bps, *now.usable_bps}):
        if link[0] in moved or link[1] in moved:
            continue
        was, is_now = before.usable_bps.get(link), now.usable_bps.get(link)
        name = f"the link from {link[0]} to {link[1]}"
        if is_now is None:
            found.append(f"{name} is down")
        elif was is None:
            found.append(f"{name} is back")
        elif is_apart(was, is_now, factor):
            found.append(f"{name} went from {was / 1e6:.4g} to {is_now / 1e6:.4g} Mbit/s")
    return found


def is_apart(a: float, b: float, factor: float) -> bool:
    """Whether one of two positive numbers is more than a factor above the other."""
    return max(a, b) > factor * min(a, b)
