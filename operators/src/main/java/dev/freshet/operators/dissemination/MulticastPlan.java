package dev.freshet.operators.dissemination;

import com.fasterxml.jackson.annotation.JsonIgnoreProperties;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.freshet.connectors.chunk.Route;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * The plan of a table that is in force, as the planner writes it: the plan JSON of {@code
 * docs/planner.md} with a few fields more.
 *
 * @param table that it is for
 * @param number of the plan, larger than that of every earlier one
 * @param source home
 * @param destinations that its trees reach
 * @param stripes trees and their shares
 * @param detached destinations that do not answer, sent to directly
 */
@JsonIgnoreProperties(ignoreUnknown = true)
record MulticastPlan(
    String table,
    long number,
    String source,
    List<String> destinations,
    List<Stripe> stripes,
    List<String> detached) {

  private static final ObjectMapper MAPPER = new ObjectMapper();

  /**
   * One tree.
   *
   * @param fraction of the changes that it takes
   * @param edges pairs of regions, each after the one that leads to its beginning
   */
  @JsonIgnoreProperties(ignoreUnknown = true)
  record Stripe(double fraction, List<List<String>> edges) {}

  MulticastPlan {
    destinations = destinations == null ? List.of() : List.copyOf(destinations);
    stripes = stripes == null ? List.of() : List.copyOf(stripes);
    detached = detached == null ? List.of() : List.copyOf(detached);
  }

  /**
   * Parses a plan.
   *
   * @throws IllegalArgumentException if it is none
   */
  static MulticastPlan parse(String json) {
    try {
      return MAPPER.readValue(json, MulticastPlan.class);
    } catch (JsonProcessingException e) {
      throw new IllegalArgumentException("not a plan: " + e.getOriginalMessage(), e);
    }
  }

  /**
   * The next hops' routes of a stripe, and those to detached regions.
   *
   * @throws IllegalArgumentException if the stripe's edges are no tree from the source
   */
  List<Route> routes(int stripe) {
    Map<String, List<String>> children = new LinkedHashMap<>();
    Set<String> reached = new LinkedHashSet<>(Set.of(source));
    for (List<String> edge : stripes.get(stripe).edges()) {
      if (edge.size() != 2 || !reached.contains(edge.get(0)) || !reached.add(edge.get(1))) {
        throw new IllegalArgumentException(
            "plan "
                + number
                + " of table "
                + table
                + ": edge "
                + edge
                + " is not of a tree from "
                + source);
      }
      children.computeIfAbsent(edge.get(0), key -> new ArrayList<>()).add(edge.get(1));
    }
    List<Route> routes = new ArrayList<>();
    children.getOrDefault(source, List.of()).forEach(hop -> routes.add(route(hop, children)));
    detached.forEach(region -> routes.add(Route.direct(region)));
    return routes;
  }

  private Route route(String region, Map<String, List<String>> children) {
    List<Route> below = new ArrayList<>();
    children.getOrDefault(region, List.of()).forEach(child -> below.add(route(child, children)));
    return new Route(region, destinations.contains(region), below);
  }

  /**
   * The stripe of each shard: as near to the fractions as whole shards allow, and each stripe's
   * spread over all, so that shards of one partition assignment do not share one tree.
   */
  int[] stripesOfShards(int shards) {
    int[] chosen = new int[shards];
    Map<Integer, Integer> dealt = new HashMap<>();
    for (int shard = 0; shard < shards; shard++) {
      int best = 0;
      double bestLack = Double.NEGATIVE_INFINITY;
      for (int stripe = 0; stripe < stripes.size(); stripe++) {
        double lack = stripes.get(stripe).fraction() * (shard + 1) - dealt.getOrDefault(stripe, 0);
        if (lack > bestLack) {
          best = stripe;
          bestLack = lack;
        }
      }
      chosen[shard] = best;
      dealt.merge(best, 1, Integer::sum);
    }
    return chosen;
  }
}
