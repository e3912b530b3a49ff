package dev.freshet.connectors.chunk;

import java.util.LinkedHashSet;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;

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

  /** The route that ends at its first region. */
  public static Route direct(String region) {
    return new Route(region, true, List.of());
  }

  /** Regions that apply what goes along it. */
  public Set<String> destinations() {
    Set<String> destinations = new LinkedHashSet<>();
    if (applies) {
      destinations.add(region);
    }
    children.forEach(child -> destinations.addAll(child.destinations()));
    return destinations;
  }

  /** The part of it that leads to some of its destinations; empty if none of them is one. */
  public Optional<Route> towards(Set<String> destinations) {
    List<Route> left =
        children.stream()
            .map(child -> child.towards(destinations).orElse(null))
            .filter(Objects::nonNull)
            .toList();
    boolean stillApplies = applies && destinations.contains(region);
    return stillApplies || !left.isEmpty()
        ? Optional.of(new Route(region, stillApplies, left))
        : Optional.empty();
  }
}
