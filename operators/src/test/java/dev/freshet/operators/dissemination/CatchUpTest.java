package dev.freshet.operators.dissemination;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import org.junit.jupiter.api.Test;

/**
 * Goal: a region that lacks a large table is no burden for checkpoints. Method: simulated regions,
 * one of which loses its store.
 */
class CatchUpTest {

  private static final int KEYS = 30_000;
  private static final String PADDING = "x".repeat(200);

  @Test
  void littleOfALargeTableIsInStateWhileItIsSent() {
    // What is lacking is older than all that the cache has.
    SimulatedRegions simulated = new SimulatedRegions(2, List.of("c:a", "c:b"), 500, 1_000);
    simulated.plan(List.of(List.of(List.of("c:home", "c:a"), List.of("c:a", "c:b"))), List.of());
    for (int key = 0; key < KEYS; key++) {
      simulated.change(PADDING + key, 1, false);
    }
    simulated.settle();
    assertThat(simulated.regions.get("c:b").store).hasSize(KEYS);

    simulated.empty("c:b");
    for (int second = 0; simulated.network.isEmpty() && second < 30; second++) {
      simulated.elapse(1_000);
      simulated.regions.keySet().forEach(simulated::report);
    }
    assertThat(simulated.network).as("chunks of catch-up").isNotEmpty();
    assertThat(waiting(simulated)).isLessThan(KEYS / 2);

    simulated.settle();
    assertThat(simulated.regions.get("c:b").store).hasSize(KEYS);
    assertThat(waiting(simulated)).isZero();
  }

  private static long waiting(SimulatedRegions simulated) {
    return simulated.home.links().stream().mapToLong(Link::backlogKeys).sum();
  }
}
