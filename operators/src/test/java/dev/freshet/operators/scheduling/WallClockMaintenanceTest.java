package dev.freshet.operators.scheduling;

import static org.assertj.core.api.Assertions.assertThat;

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
