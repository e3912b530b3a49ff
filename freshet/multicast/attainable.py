"""What of a stream can be had: a region that cannot have it all, or in time, holds up no other.

What is too much for the links to a region is coalesced away in front of them, and what is too late
there is late. Neither is a reason to plan worse for the others, or to send nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from freshet.multicast.conditions import reachable
from freshet.planner import Stream

BITS_PER_GB = 8e9
_ROOM = 1.01
"""A rate just at what a link carries could be missed by rounding."""

_CHOICE = 2.0
"""Times the smallest possible delay; a bound just there would leave one way, whatever it costs."""


def attainable(stream: Stream) -> tuple[Stream, list[str]]:
    """The same stream, with the bounds of single destinations that they can have.

    Returns:
        The stream; and what it does not do of what was asked, for people.
    """
    stream, too_much = _without_overload(stream)
    stream, too_late = _in_time(stream)
    return stream, too_much + too_late


def _in_time(stream: Stream) -> tuple[Stream, list[str]]:
    if stream.freshness_s is None:
        return stream, []
    limit = stream.freshness_s
    late = {
        region: delay_s for region, delay_s in stream.least_delays_s().items() if delay_s > limit
    }
    reasons = [
        f"chunks of {stream.chunk_mb:g} MB take {delay_s:.4g} s to {region} at the least, and"
        f" {limit:.4g} s are left of the SLO on the way"
        for region, delay_s in late.items()
    ]
    own = {region: delay_s * _CHOICE for region, delay_s in late.items()}
    return replace(stream, freshness_of_s=own), reasons


def _without_overload(stream: Stream) -> tuple[Stream, list[str]]:
    """Lets the planner believe that overloaded destinations can have all, but pass on nothing."""
    network, rate_bps = stream.network, stream.gb_per_s * BITS_PER_GB
    bandwidth, reasons = network.bandwidth_bps.copy(), []
    for region in stream.destinations:
        place = network.index[region]
        into = np.where(network.links[:, place], network.bandwidth_bps[:, place], 0.0)
        capacity = float(into.sum()) * stream.load
        if not 0 < capacity < rate_bps:
            continue
        # Ways keep their order, and the best one can be had alone.
        bandwidth[:, place] = into * (rate_bps / (into.max() * stream.load) * _ROOM)
        bandwidth[place, :] = 0.0
        reasons.append(
            f"the links to {region} carry {capacity / BITS_PER_GB:.4g} GB/s together at a load of"
            f" {stream.load:g}, and there are {stream.gb_per_s:.4g}"
        )
    if not reasons or not _leads(network.regions, bandwidth, stream):
        return stream, []
    return replace(stream, network=replace(network, bandwidth_bps=bandwidth)), reasons


def _leads(regions: Sequence[str], bandwidth: np.ndarray, stream: Stream) -> bool:
    links = [(regions[u], regions[v]) for u, v in np.argwhere(bandwidth > 0).tolist()]
    return set(stream.destinations) <= reachable(stream.source, links)
