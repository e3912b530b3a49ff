package dev.freshet.connectors.chunk;

import java.util.List;

/**
 * What is left of a chunk's tree: the region that the chunk goes to, and where that sends it on to.
 *
 * @param region {@code provider:region}
 * @param applies whether the region is a destination; a waypoint only sends on
 * @param children next hops
 */
public record Route(String region, boolean applies, List<Route> children) {

  public Route {
    children = List.copyOf(children);
  }
}
