package dev.freshet.operators.scheduling;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.freshet.connectors.metrics.MetricNames;
import dev.freshet.connectors.record.Feedback;
import dev.freshet.connectors.record.Version;
import dev.freshet.operators.scheduling.MaintenanceHarness.Ending;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.flink.runtime.checkpoint.OperatorSubtaskState;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** The operator with budgets on the wall clock, on the harness's processing time. */
class WallClockMaintenanceTest {

  private static final TestSettings RATE =
      TestSettings.regretPerStep(1).with(new BudgetSettings.Rate(10));
  private static final long NOW = 1_000_000;

  private static void pass(MaintenanceHarness harness, long fromMs, long toMs) throws Exception {
    for (long now = fromMs; now <= toMs; now++) {
      harness.processingTime(now);
    }
  }

  @ParameterizedTest
  @EnumSource(Backend.class)
  void rateLimitsUpdatesAndNewestRegretsDecide(Backend backend) throws Exception {
    try (MaintenanceHarness harness = MaintenanceHarness.open(RATE, backend)) {
      harness.processingTime(NOW);
      for (int i = 0; i < 40; i++) {
        harness.event("k" + i, 10);
      }
      pass(harness, NOW, NOW + 1_995);
      assertThat(harness.chosen()).hasSizeBetween(19, 21);
      assertThat(harness.chosenKeys()).doesNotHaveDuplicates();
    }
  }

  @Test
  void timeShareWaitsInProportionToTheComputingTime() throws Exception {
    TestSettings share = RATE.with(new BudgetSettings.TimeShare(0.25)).bundleMaxKeys(1);
    try (MaintenanceHarness harness = MaintenanceHarness.open(share, Backend.HEAP)) {
      harness.processingTime(NOW);
      harness.computeNanos(100_000_000);
      for (int i = 0; i < 40; i++) {
        harness.event("k" + i, 10);
      }
      // The harness's clock stands still in a computation: 100 ms of it earn 300 ms of rest.
      pass(harness, NOW, NOW + 3_050);
      assertThat(harness.chosen()).hasSizeBetween(10, 11);
      assertThat(harness.gauge(MetricNames.BUDGET_SPENT))
          .isCloseTo(0.1 * harness.chosen().size(), within(1e-9));
      assertThat(harness.gauge(MetricNames.BUDGET_GRANTED)).isCloseTo(0.25 * 3.05, within(0.01));
    }
  }

  @Test
  void loopSleepsWhenNothingIsPendingAndNeverHasTwoTimers() throws Exception {
    TestSettings fifo =
        RATE.with(new FifoPolicy()).with(new BudgetSettings.TimeShare(1)).bundleMaxKeys(1);
    try (MaintenanceHarness harness = MaintenanceHarness.open(fifo, Backend.HEAP)) {
      harness.processingTime(NOW);
      for (int i = 0; i < 50; i++) {
        harness.event("a", 10 + i);
      }
      for (int i = 0; i < 60; i++) {
        assertThat(harness.processingTimers()).isLessThanOrEqualTo(1);
        pass(harness, NOW + 10L * i, NOW + 10L * i + 9);
      }
      assertThat(harness.chosen()).hasSize(50);
      assertThat(harness.processingTimers()).isZero();
    }
  }

  @ParameterizedTest
  @EnumSource(Backend.class)
  void failedKeyIsTriedAgainAfterItsBackoffAndWithNewDataOnly(Backend backend) throws Exception {
    try (MaintenanceHarness harness = MaintenanceHarness.open(RATE, backend)) {
      harness.processingTime(NOW);
      harness.function(request -> Ending.FAILED);
      harness.event("a", 10);
      pass(harness, NOW, NOW + 500);
      assertThat(harness.chosen()).hasSize(1);
      harness.event("a", 20);
      pass(harness, NOW + 500, NOW + 990);
      assertThat(harness.chosen()).as("backs off for a second").hasSize(1);
      pass(harness, NOW + 990, NOW + 1_200);
      assertThat(harness.chosen()).hasSize(2);
      pass(harness, NOW + 1_200, NOW + 20_000);
      assertThat(harness.chosen()).as("no new data").hasSize(2);
    }
  }

  @ParameterizedTest
  @EnumSource(Backend.class)
  void backoffWhoseOutcomeCameWithTheSnapshotEndsAfterRestore(Backend backend) throws Exception {
    OperatorSubtaskState state;
    try (MaintenanceHarness harness = MaintenanceHarness.open(RATE, backend)) {
      harness.processingTime(NOW);
      harness.function(request -> Ending.NONE);
      harness.event("a", 10);
      pass(harness, NOW, NOW + 10);
      harness.event("a", 20);
      harness.report(harness.last(), false);
      state = harness.snapshot(1);
    }
    try (MaintenanceHarness harness = MaintenanceHarness.restore(RATE, backend, state, 1, 1, 0)) {
      pass(harness, NOW + 100, NOW + 2_000);
      assertThat(harness.chosenKeys()).containsExactly("a");
    }
  }

  @Test
  void versionsPassThoseOfFeedbackOnLostOnes() throws Exception {
    try (MaintenanceHarness harness = MaintenanceHarness.open(RATE, Backend.HEAP)) {
      harness.processingTime(NOW);
      harness.event("a", 10);
      long lost = NOW * 1_000 + 5_000_000;
      harness.feedback("a", new Version(lost, TestSettings.ORIGIN), 1, Feedback.NO_TIMESTAMP);
      // Another origin's clock, or a version from the far future, is none of ours.
      harness.feedback("a", new Version(lost + 500, 1), 1, Feedback.NO_TIMESTAMP);
      harness.feedback("a", new Version(lost * 2, TestSettings.ORIGIN), 1, Feedback.NO_TIMESTAMP);
      pass(harness, NOW, NOW + 10);
      assertThat(harness.last().version()).isEqualTo(new Version(lost + 1, TestSettings.ORIGIN));
    }
  }

  @ParameterizedTest
  @EnumSource(Backend.class)
  void rateLimitPausesTheSubtaskAndCostsNoKeyAnything(Backend backend) throws Exception {
    TestSettings share = RATE.with(new BudgetSettings.TimeShare(1)).bundleMaxKeys(1);
    OperatorSubtaskState state;
    try (MaintenanceHarness harness = MaintenanceHarness.open(share, backend)) {
      harness.processingTime(NOW);
      harness.function(request -> Ending.RATE_LIMITED);
      harness.event("a", 10);
      harness.event("b", 10);
      harness.event("b", 11);
      pass(harness, NOW, NOW + MaintenanceHarness.RETRY_AFTER_MS - 10);
      assertThat(harness.chosenKeys()).as("the limit is not on a key").containsExactly("a");
      assertThat(harness.count(MetricNames.UPDATES_RATE_LIMITED)).isEqualTo(1);
      assertThat(harness.count(MetricNames.UPDATES_FAILED)).isZero();
      assertThat(harness.gauge(MetricNames.PENDING_KEYS)).isEqualTo(2);
      assertThat(harness.gauge(MetricNames.MEAN_KEY_COST_MICROS)).as("no measurement").isZero();

      // Its turn has passed, but nothing else: the next try is in order of turn.
      pass(harness, NOW + 690, NOW + 1_300);
      assertThat(harness.chosenKeys()).containsExactly("a", "b");
      state = harness.snapshot(1);
    }
    try (MaintenanceHarness harness = MaintenanceHarness.restore(share, backend, state, 1, 1, 0)) {
      pass(harness, NOW + 1_300, NOW + 1_400);
      assertThat(harness.chosenKeys()).containsExactly("a", "b");
      assertThat(harness.chosen().stream().map(ComputeBatch.Request::timestamps))
          .containsExactly(List.of(10L), List.of(10L, 11L));
    }
  }

  @Test
  void rateLimitedBatchSpendsNoBudget() throws Exception {
    TestSettings slow = RATE.with(new BudgetSettings.Rate(2)).bundleMaxKeys(1);
    try (MaintenanceHarness harness = MaintenanceHarness.open(slow, Backend.HEAP)) {
      harness.processingTime(NOW);
      harness.function(request -> Ending.RATE_LIMITED);
      harness.event("a", 10);
      pass(harness, NOW, NOW + 100);
      harness.function(request -> Ending.OK);
      harness.event("b", 10);
      // Two tokens by the end of the pause: the one that was not used, and one more.
      pass(harness, NOW + 100, NOW + 750);
      assertThat(harness.chosenKeys()).containsExactly("a", "b", "a");
    }
  }

  @Test
  void demandOutlastsARateLimit() throws Exception {
    TestSettings onDemand =
        RATE.with(new BudgetSettings.TimeShare(1)).bundleMaxKeys(1).computedOnDemand();
    try (MaintenanceHarness harness = MaintenanceHarness.open(onDemand, Backend.HEAP)) {
      harness.processingTime(NOW);
      harness.function(request -> Ending.RATE_LIMITED);
      harness.event("a", 10);
      harness.feedback(Feedback.ofDemand("a", Feedback.NO_TIMESTAMP));
      pass(harness, NOW, NOW + 100);
      harness.function(request -> Ending.OK);
      pass(harness, NOW + 100, NOW + 800);
      assertThat(harness.chosenKeys()).containsExactly("a", "a");
    }
  }

  @Test
  void everyPendingKeyIsDrawnAsOftenAsAnother() throws Exception {
    TestSettings random = RATE.with(new RandomPolicy(1)).with(new BudgetSettings.Rate(1_000));
    try (MaintenanceHarness harness =
        MaintenanceHarness.open(random.bundleMaxKeys(1), Backend.HEAP)) {
      harness.processingTime(NOW);
      Map<String, Integer> counts = new HashMap<>();
      List<String> drawn = new ArrayList<>();
      for (long now = NOW; drawn.size() < 600; now++) {
        for (String key : List.of("a", "b", "c")) {
          harness.event(key, now);
        }
        pass(harness, now, now + 5);
        harness.chosenKeys().stream().limit(1).forEach(drawn::add);
        harness.forget();
      }
      drawn.forEach(key -> counts.merge(key, 1, Integer::sum));
      assertThat(counts.values()).hasSize(3).allMatch(count -> count > 140 && count < 260);
    }
  }

  @Test
  void bundlesGrowForCheapFunctions() throws Exception {
    TestSettings share = RATE.with(new BudgetSettings.TimeShare(1));
    try (MaintenanceHarness harness = MaintenanceHarness.open(share, Backend.HEAP)) {
      harness.processingTime(NOW);
      for (int i = 0; i < 33; i++) {
        harness.event("k" + i, 10);
      }
      pass(harness, NOW, NOW + 100);
      assertThat(harness.batches().stream().map(List::size)).containsExactly(1, 16, 16);
    }
  }
}
