package dev.freshet.operators.scheduling;

import static org.assertj.core.api.Assertions.assertThat;

import dev.freshet.connectors.record.Event;
import dev.freshet.connectors.record.Feedback;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.ShrinkingMode;
import net.jqwik.api.constraints.IntRange;

/**
 * A budget for each step of event time makes a replay deterministic: the same events and feedback,
 * delivered in any order within the watermark, with duplicates and with the watermark in any
 * pieces, choose the same keys with the same versions and the same windows, in the same order.
 */
class EventTimeDeterminismProperties {

  private static final int DELIVERIES = 3;

  @Provide
  Arbitrary<TestSettings> tables() {
    // Costs are the same in every run here, as the harness says how long a computation took.
    Arbitrary<SchedulingPolicy> policies = Arbitraries.of(TestSettings.everyPolicy());
    Arbitrary<WindowExtent> windows =
        Arbitraries.of(
            WindowExtent.ofPoints(1),
            WindowExtent.ofPoints(5),
            WindowExtent.ofPoints(1_000),
            WindowExtent.ofDuration(40),
            WindowExtent.ofDuration(350));
    return Combinators.combine(
            policies,
            windows,
            Arbitraries.integers().between(1, 4),
            Arbitraries.of(0.3, 1.0, 1.29, 4.0, 50.0),
            Arbitraries.of(0.0, 6.0),
            Arbitraries.of(false, false, false, true))
        .as(
            (policy, window, minPoints, updates, initial, onDemand) ->
                (onDemand
                        ? TestSettings.regretPerStep(1).computedOnDemand()
                        : TestSettings.regretPerStep(1).with(policy))
                    .with(window)
                    .minPoints(minPoints)
                    .with(
                        new BudgetSettings.EventTimeStep(updates, TestSettings.STEP_MS, initial)));
  }

  @Property(tries = 150, shrinking = ShrinkingMode.OFF)
  void deliveryDoesNotMatter(@ForAll("tables") TestSettings table, @ForAll long seed)
      throws Exception {
    check(table, seed, Backend.HEAP);
  }

  @Property(tries = 8, shrinking = ShrinkingMode.OFF)
  void deliveryDoesNotMatterOnRocksDb(@ForAll("tables") TestSettings table, @ForAll long seed)
      throws Exception {
    check(table, seed, Backend.ROCKSDB);
  }

  private static void check(TestSettings table, long seed, Backend backend) throws Exception {
    Random random = new Random(seed);
    List<Event> events = Replay.events(random);
    List<Feedback> feedback;
    List<ComputeBatch.Request> expected;
    try (MaintenanceHarness harness = MaintenanceHarness.open(table.bundleMaxKeys(1), backend)) {
      feedback = Replay.record(harness, events, random);
      expected = List.copyOf(harness.chosen());
    }
    for (int i = 0; i < DELIVERIES; i++) {
      long ahead = List.of(20L, 250L, 5_000L).get(i);
      try (MaintenanceHarness harness = MaintenanceHarness.open(table, backend)) {
        List<Replay.Input> inputs = Replay.shuffled(events, feedback, ahead, random);
        Replay.deliver(harness, inputs, 0, inputs.size(), random);
        assertThat(harness.chosen()).as("delivery %s", i).isEqualTo(expected);
      }
    }
  }

  /** A key with its first event in a late step still costs the steps before it nothing. */
  @Property(tries = 30, shrinking = ShrinkingMode.OFF)
  void versionsIncreaseForEachKey(
      @ForAll("tables") TestSettings table,
      @ForAll long seed,
      @ForAll @IntRange(min = 0, max = 2) int ahead)
      throws Exception {
    Random random = new Random(seed);
    List<Replay.Input> inputs =
        Replay.shuffled(Replay.events(random), List.of(), ahead * 300L, random);
    try (MaintenanceHarness harness = MaintenanceHarness.open(table, Backend.HEAP)) {
      Replay.deliver(harness, inputs, 0, inputs.size(), random);
      Map<String, Long> last = new HashMap<>();
      for (ComputeBatch.Request request : harness.chosen()) {
        long timestamp = request.version().timestampMicros();
        Long before = last.put(request.key(), timestamp);
        assertThat(before == null || before < timestamp).isTrue();
        assertThat(request.eventTimeMs()).isLessThanOrEqualTo(timestamp / 1_000);
      }
    }
  }
}
