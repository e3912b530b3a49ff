package dev.freshet.operators.scheduling;

import static org.assertj.core.api.Assertions.assertThat;

import dev.freshet.connectors.metrics.MetricNames;
import dev.freshet.connectors.record.Event;
import dev.freshet.connectors.record.Feedback;
import dev.freshet.connectors.record.ValueKind;
import dev.freshet.connectors.record.Version;
import dev.freshet.operators.scheduling.MaintenanceHarness.Ending;
import dev.freshet.schemas.DeadLetter;
import dev.freshet.schemas.Stage;
import java.nio.charset.StandardCharsets;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.assertj.core.data.Offset;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** What is chosen, when, and with which window, at steps of event time. */
class FeatureMaintenanceOperatorTest {

  private static final TestSettings REGRET = TestSettings.regretPerStep(1);

  @ParameterizedTest
  @EnumSource(Backend.class)
  void keyWithoutPendingDataIsNotChosen(Backend backend) throws Exception {
    try (MaintenanceHarness harness = MaintenanceHarness.open(REGRET, backend)) {
      harness.event("a", 10);
      harness.watermark(100);
      assertThat(harness.chosenKeys()).containsExactly("a");
      Version version = harness.last().version();
      assertThat(version).isEqualTo(new Version(100_000, TestSettings.ORIGIN));
      assertThat(harness.last().isFirst()).isTrue();

      harness.feedback("a", version, 5.0, 150);
      harness.watermark(300);
      assertThat(harness.chosenKeys()).as("feedback alone makes no key eligible").hasSize(1);

      harness.event("a", 310);
      harness.watermark(400);
      assertThat(harness.chosenKeys()).containsExactly("a", "a");
      assertThat(harness.last().regretRemoved()).isEqualTo(5.0);
      assertThat(harness.last().isFirst()).isFalse();
    }
  }

  @ParameterizedTest
  @EnumSource(Backend.class)
  void onlyFeedbackOnTheCurrentVersionCounts(Backend backend) throws Exception {
    try (MaintenanceHarness harness = MaintenanceHarness.open(REGRET, backend)) {
      harness.event("a", 10);
      harness.watermark(100);
      final Version first = harness.last().version();
      harness.event("a", 110);
      harness.watermark(200);
      final Version second = harness.last().version();

      harness.feedback("a", first, 100, 210);
      harness.feedback("a", new Version(1, 1), 100, 210);
      harness.feedback("a", Version.NONE, 100, 210);
      harness.feedback("nobody", second, 100, 210);
      harness.feedback("a", second, 2.5, 210);
      harness.feedback("a", second, Double.NaN, 211);
      harness.event("a", 220);
      harness.watermark(300);

      assertThat(harness.last().regretRemoved()).isEqualTo(2.5);
      assertThat(harness.count(MetricNames.FEEDBACK_USED)).isEqualTo(2);
      assertThat(harness.count(MetricNames.FEEDBACK_DROPPED)).isEqualTo(4);
    }
  }

  @ParameterizedTest
  @EnumSource(Backend.class)
  void feedbackOnAMissingValueCountsUntilThereIsOne(Backend backend) throws Exception {
    RegretSettings competing = new RegretSettings(1e-6, TestSettings.MAX_REGRET, 0.0);
    TestSettings table = REGRET.with(new RegretProportionalPolicy(competing));
    try (MaintenanceHarness harness = MaintenanceHarness.open(table, backend)) {
      // Queries found nothing: of a before its first event, of b in a step before it.
      harness.feedback("a", Version.NONE, 2, 10);
      harness.feedback("b", Version.NONE, 9, 20);
      harness.feedback("a", new Version(5, TestSettings.ORIGIN), 50, 20);
      harness.event("a", 30);
      harness.event("c", 30);
      harness.event("b", 130);
      harness.watermark(100);
      assertThat(harness.chosenKeys()).containsExactly("a");
      assertThat(harness.last().regretRemoved()).isEqualTo(2);
      assertThat(harness.count(MetricNames.FEEDBACK_USED)).isEqualTo(1);
      assertThat(harness.count(MetricNames.FEEDBACK_DROPPED)).isEqualTo(2);

      // Now a has a value, and nothing known of b makes it better than c.
      harness.feedback("a", Version.NONE, 70, 150);
      harness.feedback("c", Version.NONE, 1, 150);
      harness.feedback("b", Version.NONE, 2, 150);
      harness.event("a", 160);
      harness.watermark(400);
      assertThat(harness.chosenKeys()).containsExactly("a", "b", "c", "a");
      assertThat(harness.chosen().stream().map(ComputeBatch.Request::regretRemoved))
          .containsExactly(2.0, 2.0, 1.0, 0.0);
      assertThat(harness.count(MetricNames.FEEDBACK_DROPPED)).isEqualTo(3);
    }
  }

  @Test
  void lateFeedbackCountsAtOnce() throws Exception {
    try (MaintenanceHarness harness = MaintenanceHarness.open(REGRET, Backend.HEAP)) {
      harness.event("a", 10);
      harness.watermark(100);
      harness.feedback("a", harness.last().version(), 3, 50);
      harness.feedback("a", harness.last().version(), 4, Feedback.NO_TIMESTAMP);
      assertThat(harness.count(MetricNames.FEEDBACK_USED)).isEqualTo(2);
      assertThat(harness.gauge(MetricNames.ESTIMATED_REGRET)).isEqualTo(7);
    }
  }

  @Test
  void regretThatIsAllRemovedLeavesNoRestOfRoundings() throws Exception {
    TestSettings three = REGRET.with(TestSettings.perStep(3));
    try (MaintenanceHarness harness = MaintenanceHarness.open(three, Backend.HEAP)) {
      List<String> keys = List.of("a", "b", "c");
      for (String key : keys) {
        harness.event(key, 10);
      }
      harness.watermark(100);
      Map<String, Version> versions = new HashMap<>();
      harness.chosen().forEach(chosen -> versions.put(chosen.key(), chosen.version()));
      double error = 0.1;
      for (String key : keys) {
        harness.feedback(key, versions.get(key), error, 50);
        error += 0.1;
      }
      assertThat(harness.gauge(MetricNames.ESTIMATED_REGRET)).isCloseTo(0.6, Offset.offset(1e-9));
      for (String key : keys) {
        harness.event(key, 120);
      }
      harness.watermark(200);

      assertThat(harness.chosen()).hasSize(6);
      assertThat(harness.gauge(MetricNames.ESTIMATED_REGRET)).isZero();
    }
  }

  @ParameterizedTest
  @EnumSource(Backend.class)
  void highestRegretFirstAndTiesByTurnThenKey(Backend backend) throws Exception {
    TestSettings three = REGRET.with(TestSettings.perStep(3));
    try (MaintenanceHarness harness = MaintenanceHarness.open(three, backend)) {
      for (String key : List.of("c", "a", "b")) {
        harness.event(key, 10);
      }
      harness.watermark(100);
      assertThat(harness.chosenKeys()).as("no value yet: ties").containsExactly("a", "b", "c");
      List<ComputeBatch.Request> first = List.copyOf(harness.chosen());
      harness.forget();

      for (ComputeBatch.Request request : first) {
        harness.feedback(request.key(), request.version(), request.key().equals("b") ? 9 : 1, 110);
        harness.event(request.key(), 120);
      }
      harness.event("c", 121);
      harness.watermark(200);
      assertThat(harness.chosenKeys()).as("a tie but for pending").containsExactly("b", "c", "a");
      harness.forget();

      // Of two a step, c waits one step longer than the others: its turn comes before a's.
      harness.event("a", 220);
      harness.watermark(300);
      for (String key : List.of("a", "b", "c")) {
        harness.event(key, 320);
      }
      harness.watermark(400);
      assertThat(harness.chosenKeys()).as("a tie").containsExactly("a", "b", "c", "a");
    }
  }

  @ParameterizedTest
  @EnumSource(Backend.class)
  void lotsAreDrawnAnewForEveryStep(Backend backend) throws Exception {
    RandomPolicy random = new RandomPolicy(11);
    try (MaintenanceHarness harness = MaintenanceHarness.open(REGRET.with(random), backend)) {
      Map<String, Integer> counts = new HashMap<>();
      int again = 0;
      String before = "";
      for (long end = 100; end <= 60_000; end += 100) {
        for (String key : List.of("a", "b", "c")) {
          harness.event(key, end - 50);
        }
        harness.watermark(end);
        String chosen = harness.last().key();
        long step = end;
        assertThat(chosen)
            .isEqualTo(
                Stream.of("a", "b", "c")
                    .max(Comparator.comparingDouble(key -> random.lot(key, step)))
                    .orElseThrow());
        counts.merge(chosen, 1, Integer::sum);
        again += chosen.equals(before) ? 1 : 0;
        before = chosen;
      }
      // 200 of 600 each, and 200 times the key just drawn; the standard deviation is 11.5.
      assertThat(counts.values()).allMatch(count -> count > 140 && count < 260);
      assertThat(again).isBetween(140, 260);
    }
  }

  @Test
  void keyWhoseValueCostsLessIsWorthMorePerCost() throws Exception {
    TestSettings perCost =
        REGRET.with(new RegretPerCostPolicy(new RegretSettings(1e-6, TestSettings.MAX_REGRET)));
    try (MaintenanceHarness harness = MaintenanceHarness.open(perCost, Backend.HEAP)) {
      harness.computeNanos(300_000_000);
      harness.event("dear", 10);
      harness.watermark(100);
      harness.computeNanos(100_000_000);
      harness.event("cheap", 110);
      harness.watermark(200);
      assertThat(harness.gauge(MetricNames.MEAN_KEY_COST_MICROS)).isEqualTo(200_000);
      for (ComputeBatch.Request request : List.copyOf(harness.chosen())) {
        double error = request.key().equals("dear") ? 5 : 3;
        harness.feedback(request.key(), request.version(), error, 210);
        harness.event(request.key(), 220);
      }
      harness.watermark(400);
      assertThat(harness.chosenKeys()).containsExactly("dear", "cheap", "cheap", "dear");
    }
  }

  @ParameterizedTest
  @EnumSource(Backend.class)
  void keyInFlightIsNotChosenAgain(Backend backend) throws Exception {
    try (MaintenanceHarness harness = MaintenanceHarness.open(REGRET, backend)) {
      harness.function(request -> Ending.NONE);
      harness.event("a", 10);
      harness.watermark(100);
      harness.event("a", 110);
      harness.event("a", 310);
      harness.watermark(400);
      assertThat(harness.chosen()).hasSize(1);

      harness.report(harness.last(), true);
      harness.watermark(500);
      assertThat(harness.chosen()).as("its new data counts when it is done").hasSize(1);
      harness.event("a", 510);
      harness.watermark(600);
      assertThat(harness.chosen()).hasSize(2);
      assertThat(harness.last().timestamps()).containsExactly(10L, 110L, 310L, 510L);
    }
  }

  @Test
  void outcomeOfAnotherVersionIsIgnored() throws Exception {
    try (MaintenanceHarness harness = MaintenanceHarness.open(REGRET, Backend.HEAP)) {
      harness.function(request -> Ending.NONE);
      harness.event("a", 10);
      harness.watermark(100);
      ComputeBatch.Request real = harness.last();
      harness.report(
          new ComputeBatch.Request(
              "a", new Version(5, 1), 0, false, 0, 1, List.of(), List.of(), List.of()),
          true);
      harness.event("a", 110);
      harness.watermark(300);
      assertThat(harness.chosen()).hasSize(1);
      harness.report(real, true);
      harness.event("a", 310);
      harness.watermark(400);
      assertThat(harness.chosen()).hasSize(2);
    }
  }

  @ParameterizedTest
  @EnumSource(Backend.class)
  void failureKeepsTheLastGoodVersionAndItsRegretAndBacksOff(Backend backend) throws Exception {
    try (MaintenanceHarness harness = MaintenanceHarness.open(REGRET, backend)) {
      harness.event("a", 10);
      harness.watermark(100);
      final Version good = harness.last().version();
      harness.feedback("a", good, 2, 110);
      harness.event("a", 120);
      harness.function(request -> Ending.FAILED);
      harness.watermark(200);
      assertThat(harness.chosen()).hasSize(2);
      assertThat(harness.count(MetricNames.UPDATES_FAILED)).isEqualTo(1);
      assertThat(harness.gauge(MetricNames.ESTIMATED_REGRET)).isEqualTo(2);

      harness.watermark(1_000);
      assertThat(harness.chosen()).as("the data that failed is not tried again").hasSize(2);

      harness.feedback("a", good, 3, 1_010);
      harness.event("a", 1_020);
      harness.watermark(1_100);
      assertThat(harness.chosen()).hasSize(3);
      assertThat(harness.last().regretRemoved()).as("old and new feedback").isEqualTo(5);

      // The second failure in a row, decided at 1100, backs off for two steps.
      harness.function(request -> Ending.OK);
      harness.event("a", 1_110);
      harness.watermark(1_200);
      assertThat(harness.chosen()).hasSize(3);
      harness.watermark(1_300);
      assertThat(harness.chosen()).hasSize(4);
      assertThat(harness.gauge(MetricNames.ESTIMATED_REGRET)).isZero();
    }
  }

  @Test
  void backoffEndsAtTheSameStepHoweverTheWatermarkMoves() throws Exception {
    List<List<Long>> splits =
        List.of(List.of(2_000L), List.of(100L, 2_000L), List.of(100L, 101L, 200L, 399L, 2_000L));
    for (List<Long> split : splits) {
      TestSettings fifo = REGRET.with(new FifoPolicy());
      try (MaintenanceHarness harness = MaintenanceHarness.open(fifo, Backend.HEAP)) {
        harness.function(request -> Ending.FAILED);
        for (int i = 0; i < 4; i++) {
          harness.event("a", 10 + i);
        }
        for (long watermark : split) {
          harness.watermark(watermark);
        }
        assertThat(harness.chosen().stream().map(r -> r.version().timestampMicros()))
            .as("watermarks %s", split)
            .containsExactly(100_000L, 200_000L, 400_000L, 800_000L);
      }
    }
  }

  @ParameterizedTest
  @EnumSource(Backend.class)
  void minPointsAreWaitedFor(Backend backend) throws Exception {
    try (MaintenanceHarness harness = MaintenanceHarness.open(REGRET.minPoints(3), backend)) {
      harness.event("a", 10);
      harness.event("a", 20);
      harness.watermark(100);
      assertThat(harness.chosen()).isEmpty();
      // The third point has arrived, but is of a later step.
      harness.event("a", 250);
      harness.watermark(200);
      assertThat(harness.chosen()).isEmpty();
      harness.watermark(300);
      assertThat(harness.last().timestamps()).containsExactly(10L, 20L, 250L);
    }
  }

  @ParameterizedTest
  @EnumSource(Backend.class)
  void fifoProcessesEachEventInOrderWithTheWindowAsOfIt(Backend backend) throws Exception {
    TestSettings fifo = REGRET.with(new FifoPolicy());
    try (MaintenanceHarness harness = MaintenanceHarness.open(fifo, backend)) {
      harness.event("a", 10);
      harness.event("b", 15);
      harness.event("a", 30);
      harness.event("a", 20);
      for (long end = 100; end <= 500; end += 100) {
        harness.watermark(end);
      }
      assertThat(harness.chosenKeys()).containsExactly("a", "b", "a", "a");
      assertThat(harness.chosen().stream().map(ComputeBatch.Request::timestamps))
          .containsExactly(List.of(10L), List.of(15L), List.of(10L, 20L), List.of(10L, 20L, 30L));
    }
  }

  @Test
  void fifoSkipsOnlyTheEventsWithTooFewPoints() throws Exception {
    TestSettings fifo = REGRET.with(new FifoPolicy()).minPoints(3);
    try (MaintenanceHarness harness = MaintenanceHarness.open(fifo, Backend.HEAP)) {
      for (int i = 1; i <= 5; i++) {
        harness.event("a", 10L * i);
      }
      harness.watermark(1_000);
      assertThat(harness.chosen().stream().map(ComputeBatch.Request::eventTimeMs))
          .containsExactly(30L, 40L, 50L);
    }
  }

  @Test
  void fifoWithLateEventComputesAsOfWhatItHadReached() throws Exception {
    TestSettings fifo = REGRET.with(new FifoPolicy());
    try (MaintenanceHarness harness = MaintenanceHarness.open(fifo, Backend.HEAP)) {
      harness.event("a", 10);
      harness.event("a", 50);
      harness.watermark(200);
      harness.event("a", 30);
      harness.watermark(300);
      assertThat(harness.chosen().stream().map(ComputeBatch.Request::timestamps))
          .containsExactly(List.of(10L), List.of(10L, 50L), List.of(10L, 30L, 50L));
    }
  }

  @Test
  void choicesDoNotDependOnTheSizeOfBundles() throws Exception {
    for (SchedulingPolicy policy : TestSettings.everyPolicy()) {
      List<ComputeBatch.Request> oneByOne = chosenWithBundles(policy, 1);
      List<ComputeBatch.Request> bundled = chosenWithBundles(policy, 16);
      assertThat(bundled).as(policy.name()).isEqualTo(oneByOne).hasSizeGreaterThan(8);
    }
  }

  private static List<ComputeBatch.Request> chosenWithBundles(SchedulingPolicy policy, int keys)
      throws Exception {
    TestSettings settings = REGRET.with(policy).with(TestSettings.perStep(5)).bundleMaxKeys(keys);
    try (MaintenanceHarness harness = MaintenanceHarness.open(settings, Backend.HEAP)) {
      for (long step = 0; step < 4; step++) {
        // Bursts: a has events before b's first, c and d alternate.
        for (int i = 0; i < 3; i++) {
          harness.event("a", step * 100 + 10 + i);
          harness.event("b", step * 100 + 20 + i);
          harness.event("c", step * 100 + 30 + 2L * i);
          harness.event("d", step * 100 + 31 + 2L * i);
        }
        harness.watermark((step + 1) * 100);
      }
      return List.copyOf(harness.chosen());
    }
  }

  @Test
  void duplicateIsCountedAndNotPending() throws Exception {
    try (MaintenanceHarness harness = MaintenanceHarness.open(REGRET, Backend.HEAP)) {
      harness.event("a", 10);
      harness.event("a", 10);
      harness.watermark(100);
      harness.event("a", 10);
      harness.watermark(300);
      assertThat(harness.chosen()).hasSize(1);
      assertThat(harness.last().timestamps()).containsExactly(10L);
      assertThat(harness.count(MetricNames.EVENTS_DUPLICATE)).isEqualTo(2);

      harness.event(MaintenanceHarness.scalar("a", 10, 0, -1));
      harness.watermark(400);
      assertThat(harness.last().values()).as("another value replaces").containsExactly(-1.0);
    }
  }

  @Test
  void vectorsOfDifferentLengthsSpoilOnlyTheirOwnKey() throws Exception {
    TestSettings vectors = REGRET.with(ValueKind.VECTOR).with(TestSettings.perStep(3));
    try (MaintenanceHarness harness = MaintenanceHarness.open(vectors, Backend.HEAP)) {
      harness.event(vector("a", 10, 1, 2, 3));
      harness.event(vector("a", 20, 4));
      harness.event(vector("b", 10, 7, 8, 9));
      harness.watermark(100);
      assertThat(harness.chosen().get(0).values())
          .containsExactly(1.0, 2.0, 3.0, 4.0, Double.NaN, Double.NaN);
      assertThat(harness.chosen().get(1).values()).containsExactly(7.0, 8.0, 9.0);
    }
  }

  private static Event vector(String key, long timestampMs, double... values) {
    return new Event(key, timestampMs, 0, ValueKind.VECTOR, MaintenanceHarness.doubles(values));
  }

  @Test
  void jsonGoesThroughUnchanged() throws Exception {
    try (MaintenanceHarness harness =
        MaintenanceHarness.open(REGRET.with(ValueKind.JSON), Backend.HEAP)) {
      String value = "{\"gr\u00fc\u00df\":\"\ud83c\udf0a\"}";
      harness.event(
          new Event("k\u00e9y", 10, 0, ValueKind.JSON, value.getBytes(StandardCharsets.UTF_8)));
      harness.watermark(100);
      assertThat(harness.last().key()).isEqualTo("k\u00e9y");
      assertThat(harness.last().json()).containsExactly(value);
    }
  }

  @Test
  void oldTimestampCostsNoWalkThroughTheStepsSince() throws Exception {
    TestSettings millis = REGRET.with(new BudgetSettings.EventTimeStep(1, 1, 0));
    try (MaintenanceHarness harness = MaintenanceHarness.open(millis, Backend.HEAP)) {
      long now = 1_800_000_000_000L;
      // A producer that sends seconds for milliseconds.
      harness.event("a", now / 1_000);
      harness.event("a", now);
      harness.watermark(now);
      assertThat(harness.chosen().stream().map(ComputeBatch.Request::eventTimeMs))
          .containsExactly(now / 1_000, now);
    }
  }

  @Test
  void endOfInputDecidesTheLastStepAndPassesTheWatermarkOn() throws Exception {
    try (MaintenanceHarness harness = MaintenanceHarness.open(REGRET, Backend.HEAP)) {
      harness.event("a", 10);
      harness.event("b", 10);
      harness.event("c", 950);
      harness.watermark(Long.MAX_VALUE);
      assertThat(harness.chosen().stream().map(r -> r.version().timestampMicros() / 1_000))
          .containsExactly(100L, 200L, 1_000L);
      assertThat(harness.emittedWatermark()).isEqualTo(Long.MAX_VALUE);
    }
  }

  @Test
  void watermarkIsTheSmallerOfBothInputs() throws Exception {
    try (MaintenanceHarness harness = MaintenanceHarness.open(REGRET, Backend.HEAP)) {
      harness.event("a", 10);
      harness.watermark1(1_000);
      assertThat(harness.chosen()).isEmpty();
      harness.watermark(150);
      assertThat(harness.chosen()).hasSize(1);
      assertThat(harness.emittedWatermark()).isEqualTo(150);
    }
  }

  @ParameterizedTest
  @EnumSource(Backend.class)
  void rateLimitEndsTheStepAndTheKeyIsTriedWhenThePauseIsOver(Backend backend) throws Exception {
    try (MaintenanceHarness harness =
        MaintenanceHarness.open(REGRET.with(TestSettings.perStep(2)).bundleMaxKeys(1), backend)) {
      harness.processingTime(5_000);
      harness.function(request -> Ending.RATE_LIMITED);
      for (String key : List.of("a", "b", "c")) {
        harness.event(key, 10);
      }
      harness.watermark(100);
      assertThat(harness.chosenKeys()).containsExactly("a");
      harness.function(request -> Ending.OK);
      harness.watermark(300);
      assertThat(harness.chosenKeys()).as("steps in the pause").containsExactly("a");
      harness.processingTime(5_000 + MaintenanceHarness.RETRY_AFTER_MS);
      harness.watermark(400);
      // Saved up: 2 a step, and 1 more.
      assertThat(harness.chosenKeys()).containsExactly("a", "b", "c", "a");
      assertThat(harness.count(MetricNames.UPDATES_RATE_LIMITED)).isEqualTo(1);
      assertThat(harness.count(MetricNames.UPDATES_FAILED)).isZero();
    }
  }

  @ParameterizedTest
  @EnumSource(Backend.class)
  void windowThatIsTooLargeIsADeadLetterOfItsKeyAlone(Backend backend) throws Exception {
    TestSettings json =
        REGRET.with(ValueKind.JSON).with(TestSettings.perStep(3)).windowBytesMax(300);
    try (MaintenanceHarness harness = MaintenanceHarness.open(json, backend)) {
      for (String key : List.of("a", "large", "b")) {
        String text = "\"" + "x".repeat(key.equals("large") ? 200 : 20) + "\"";
        byte[] value = text.getBytes(StandardCharsets.UTF_8);
        harness.event(new Event(key, 10, 0, ValueKind.JSON, value));
      }
      harness.watermark(100);
      assertThat(harness.chosenKeys()).containsExactly("a", "b");
      assertThat(harness.deadLetters()).hasSize(1);
      DeadLetter letter = harness.deadLetters().get(0);
      assertThat(letter.getStage()).isEqualTo(Stage.FUNCTION);
      assertThat(letter.getKey()).isEqualTo(StandardCharsets.UTF_8.encode("large"));
      assertThat(letter.getEventTime()).isEqualTo(10);
      assertThat(letter.getReason().toString())
          .contains("key 'large' has 1 events", "at most 300", "shorten the table's window");
      assertThat(harness.count(MetricNames.DEAD_LETTERS)).isEqualTo(1);
      assertThat(harness.count(MetricNames.UPDATES_FAILED)).isEqualTo(1);

      // It has backed off as from a failure, and its next window may be small enough.
      harness.watermark(300);
      assertThat(harness.deadLetters()).as("without new data").hasSize(1);
      for (long time = 310; time < 350; time += 10) {
        harness.event(new Event("large", time, 0, ValueKind.JSON, new byte[] {'1'}));
      }
      harness.watermark(400);
      assertThat(harness.last().key()).isEqualTo("large");
      assertThat(harness.last().timestamps()).containsExactly(310L, 320L, 330L, 340L);
    }
  }

  @Test
  void initialUpdatesAreGrantedOnce() throws Exception {
    TestSettings settings = REGRET.with(new BudgetSettings.EventTimeStep(1, 100, 5));
    try (MaintenanceHarness harness = MaintenanceHarness.open(settings, Backend.HEAP)) {
      for (int i = 0; i < 10; i++) {
        harness.event("k" + i, 10);
      }
      harness.watermark(100);
      assertThat(harness.chosen()).hasSize(5);
      harness.watermark(200);
      assertThat(harness.chosen()).hasSize(6);
    }
  }

  @Test
  void nobodyStarvesBesideLoudKeys() throws Exception {
    TestSettings settings = REGRET.with(TestSettings.regret(1.0, TestSettings.MAX_REGRET));
    int loud = 5;
    int quiet = 15;
    int error = 20;
    try (MaintenanceHarness harness = MaintenanceHarness.open(settings, Backend.HEAP)) {
      Map<String, Version> versions = new HashMap<>();
      Map<String, Integer> waits = new HashMap<>();
      int longest = 0;
      for (long step = 0; step < 600; step++) {
        for (int i = 0; i < loud + quiet; i++) {
          String key = (i < loud ? "loud" : "quiet") + i;
          harness.event(key, step * 100 + 10);
          if (i < loud && versions.containsKey(key)) {
            harness.feedback(key, versions.get(key), error, step * 100 + 20);
          }
          waits.merge(key, 1, Integer::sum);
        }
        harness.watermark((step + 1) * 100);
        ComputeBatch.Request chosen = harness.last();
        versions.put(chosen.key(), chosen.version());
        longest = Math.max(longest, waits.put(chosen.key(), 0));
      }
      // Each choice takes one key from the front; a quiet key's regret grows by 1 a step. After
      // (error + 1) * keys steps it is beyond what any key gathers between two choices.
      int bound = (error + 2) * (loud + quiet);
      assertThat(longest).isLessThan(bound);
      assertThat(waits.values()).allMatch(wait -> wait < bound);
      assertThat(harness.chosenKeys()).contains("quiet19", "quiet5");
    }
  }
}
