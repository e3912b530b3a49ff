package dev.freshet.operators.scheduling;

import static org.assertj.core.api.Assertions.assertThat;

import dev.freshet.connectors.metrics.MetricNames;
import dev.freshet.connectors.record.Feedback;
import dev.freshet.operators.scheduling.MaintenanceHarness.Ending;
import java.util.List;
import org.apache.flink.runtime.checkpoint.OperatorSubtaskState;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Keys that are computed for those who wait to read them.
 *
 * <p>Goal: events alone compute nothing; a demand computes its key once, those who have waited
 * longest first; no demand is lost with a failure. Method: the operator in the harness with both
 * kinds of budget; a key that is computed unasked, twice, out of turn or never is a failure.
 */
class OnDemandMaintenanceTest {

  private static final TestSettings STEPS = TestSettings.regretPerStep(1).computedOnDemand();
  private static final TestSettings WALL_CLOCK =
      STEPS.with(new BudgetSettings.Rate(1_000)).bundleMaxKeys(1);
  private static final long NOW = 1_000_000;

  private static void pass(MaintenanceHarness harness, long fromMs, long toMs) throws Exception {
    for (long now = fromMs; now <= toMs; now++) {
      harness.processingTime(now);
    }
  }

  private static void demand(MaintenanceHarness harness, String key) throws Exception {
    harness.feedback(Feedback.ofDemand(key, Feedback.NO_TIMESTAMP));
  }

  @ParameterizedTest
  @EnumSource(Backend.class)
  void keyIsComputedOnceForEachDemand(Backend backend) throws Exception {
    try (MaintenanceHarness harness = MaintenanceHarness.open(WALL_CLOCK, backend)) {
      harness.processingTime(NOW);
      harness.event("a", 10);
      harness.event("b", 10);
      pass(harness, NOW, NOW + 100);
      assertThat(harness.chosen()).as("nobody asked").isEmpty();
      assertThat(harness.processingTimers()).as("nor is there anything to do").isZero();

      demand(harness, "b");
      demand(harness, "b");
      pass(harness, NOW + 100, NOW + 200);
      assertThat(harness.chosenKeys()).containsExactly("b");
      assertThat(harness.count(MetricNames.DEMANDS)).isEqualTo(2);

      harness.event("b", 20);
      pass(harness, NOW + 200, NOW + 300);
      assertThat(harness.chosen()).as("that demand was met").hasSize(1);
      demand(harness, "b");
      pass(harness, NOW + 300, NOW + 400);
      assertThat(harness.chosenKeys()).containsExactly("b", "b");
      assertThat(harness.last().timestamps()).containsExactly(10L, 20L);
    }
  }

  @Test
  void demandThatNothingNewCanMeetIsIgnored() throws Exception {
    try (MaintenanceHarness harness = MaintenanceHarness.open(WALL_CLOCK, Backend.HEAP)) {
      harness.processingTime(NOW);
      demand(harness, "unknown");
      harness.event("a", 10);
      demand(harness, "a");
      pass(harness, NOW, NOW + 100);
      demand(harness, "a");
      assertThat(harness.count(MetricNames.DEMANDS)).isEqualTo(1);
      assertThat(harness.count(MetricNames.DEMANDS_IGNORED)).isEqualTo(2);
      harness.event("a", 20);
      harness.event("unknown", 20);
      pass(harness, NOW + 100, NOW + 200);
      assertThat(harness.chosenKeys()).as("it was about the value before").containsExactly("a");
      assertThat(harness.gauge(MetricNames.KEYS)).as("a demand makes no key").isEqualTo(2);
    }
  }

  @Test
  void tableThatComputesUnaskedIgnoresDemands() throws Exception {
    for (TestSettings table :
        List.of(
            TestSettings.regretPerStep(1),
            TestSettings.regretPerStep(1).with(new BudgetSettings.Rate(10)))) {
      try (MaintenanceHarness harness = MaintenanceHarness.open(table, Backend.HEAP)) {
        harness.event("a", 10);
        demand(harness, "a");
        harness.feedback(Feedback.ofDemand("a", 10));
        assertThat(harness.count(MetricNames.DEMANDS_IGNORED)).isEqualTo(2);
        assertThat(harness.count(MetricNames.DEMANDS)).isZero();
      }
    }
  }

  @ParameterizedTest
  @EnumSource(Backend.class)
  void whoHasWaitedLongestComesFirst(Backend backend) throws Exception {
    try (MaintenanceHarness harness =
        MaintenanceHarness.open(WALL_CLOCK.with(new BudgetSettings.Rate(10)), backend)) {
      harness.processingTime(NOW);
      List<String> keys = List.of("d", "b", "c", "a");
      for (int i = 0; i < keys.size(); i++) {
        harness.event(keys.get(i), 10);
      }
      for (int i = 0; i < keys.size(); i++) {
        harness.processingTime(NOW + i);
        demand(harness, keys.get(i));
      }
      harness.processingTime(NOW + 5);
      demand(harness, "d");
      pass(harness, NOW + 5, NOW + 1_000);
      assertThat(harness.chosenKeys()).containsExactlyElementsOf(keys);
    }
  }

  @Test
  void demandDuringAComputationCountsWhenItLacksAnEvent() throws Exception {
    try (MaintenanceHarness harness = MaintenanceHarness.open(WALL_CLOCK, Backend.HEAP)) {
      harness.processingTime(NOW);
      harness.function(request -> Ending.NONE);
      for (String key : List.of("a", "b")) {
        harness.event(key, 10);
        demand(harness, key);
        pass(harness, NOW, NOW + 20);
      }
      demand(harness, "a");
      harness.event("b", 20);
      demand(harness, "b");
      harness.chosen().forEach(request -> harness.report(request, true));
      harness.event("a", 20);
      // Outcomes are taken in with the next batch.
      harness.event("c", 20);
      demand(harness, "c");
      pass(harness, NOW + 20, NOW + 100);
      assertThat(harness.chosenKeys()).containsExactly("a", "b", "c", "b");
    }
  }

  @Test
  void failedComputationHasMetItsDemand() throws Exception {
    try (MaintenanceHarness harness = MaintenanceHarness.open(WALL_CLOCK, Backend.HEAP)) {
      harness.processingTime(NOW);
      harness.function(request -> Ending.FAILED);
      harness.event("a", 10);
      demand(harness, "a");
      pass(harness, NOW, NOW + 100);
      harness.function(request -> Ending.OK);
      harness.event("a", 20);
      pass(harness, NOW + 100, NOW + 3_000);
      assertThat(harness.chosen()).hasSize(1);
      demand(harness, "a");
      pass(harness, NOW + 3_000, NOW + 3_100);
      assertThat(harness.chosen()).hasSize(2);
    }
  }

  @ParameterizedTest
  @EnumSource(Backend.class)
  void demandCountsAtTheEndOfItsStepAfterTheStepsEvents(Backend backend) throws Exception {
    try (MaintenanceHarness harness = MaintenanceHarness.open(STEPS, backend)) {
      harness.feedback(Feedback.ofDemand("a", 10));
      harness.feedback(Feedback.ofDemand("b", 5));
      harness.feedback(Feedback.ofDemand("early", 20));
      harness.feedback(Feedback.ofDemand("late", 120));
      harness.event("a", 50);
      harness.event("b", 60);
      harness.event("early", 130);
      harness.event("late", 140);
      harness.watermark(1_000);
      assertThat(harness.chosenKeys()).containsExactly("b", "a", "late");
      assertThat(harness.chosen().stream().map(r -> r.version().timestampMicros()))
          .containsExactly(100_000L, 200_000L, 300_000L);
      assertThat(harness.count(MetricNames.DEMANDS)).isEqualTo(3);
      assertThat(harness.count(MetricNames.DEMANDS_IGNORED)).as("before its events").isEqualTo(1);
      // Late by now, and so at once.
      harness.feedback(Feedback.ofDemand("early", 900));
      harness.watermark(1_100);
      assertThat(harness.last().key()).isEqualTo("early");
    }
  }

  @ParameterizedTest
  @EnumSource(Backend.class)
  void demandsSurviveARestore(Backend backend) throws Exception {
    OperatorSubtaskState state;
    try (MaintenanceHarness harness = MaintenanceHarness.open(STEPS, backend)) {
      harness.function(request -> Ending.NONE);
      for (String key : List.of("asked", "unasked", "under-way")) {
        harness.event(key, 50);
      }
      harness.feedback(Feedback.ofDemand("under-way", 60));
      harness.feedback(Feedback.ofDemand("asked", 70));
      harness.event("early", 150);
      harness.feedback(Feedback.ofDemand("early", 160));
      harness.watermark(100);
      assertThat(harness.chosenKeys()).containsExactly("under-way");
      state = harness.snapshot(1);
    }
    try (MaintenanceHarness harness = MaintenanceHarness.restore(STEPS, backend, state, 1, 1, 0)) {
      harness.watermark(1_000);
      assertThat(harness.chosenKeys()).containsExactly("under-way", "asked", "early");
    }
  }
}
