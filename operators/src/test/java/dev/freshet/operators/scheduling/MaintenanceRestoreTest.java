package dev.freshet.operators.scheduling;

import static org.assertj.core.api.Assertions.assertThat;

import dev.freshet.connectors.metrics.MetricNames;
import dev.freshet.connectors.record.Event;
import dev.freshet.connectors.record.Feedback;
import dev.freshet.connectors.record.Version;
import dev.freshet.operators.scheduling.MaintenanceHarness.Ending;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import org.apache.flink.runtime.checkpoint.OperatorSubtaskState;
import org.apache.flink.runtime.state.KeyGroupRangeAssignment;
import org.apache.flink.streaming.util.AbstractStreamOperatorTestHarness;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Snapshot, restore and rescaling.
 *
 * <p>Goal: no key is lost, a computation under way is pending again, versions never go back, budget
 * and steps continue. Method: keys in every state (pending, under way, failed, early input, value
 * with feedback) on 2 subtasks, restored on 4, then on 1. A key that is missing at the end, or has
 * a smaller version than before, is a failure.
 */
class MaintenanceRestoreTest {

  private static final int KEYS = 60;

  private static final TestSettings TABLE =
      TestSettings.regretPerStep(1).with(TestSettings.perStep(400));

  /** All subtasks of one run. */
  private static final class Run implements AutoCloseable {
    private final List<MaintenanceHarness> subtasks = new ArrayList<>();

    static Run start(TestSettings table, Backend backend, int parallelism) throws Exception {
      Run run = new Run();
      for (int i = 0; i < parallelism; i++) {
        run.subtasks.add(MaintenanceHarness.openSubtask(table, backend, parallelism, i));
      }
      return run;
    }

    static Run restore(
        TestSettings table, Backend backend, OperatorSubtaskState state, int from, int to)
        throws Exception {
      Run run = new Run();
      for (int i = 0; i < to; i++) {
        run.subtasks.add(MaintenanceHarness.restore(table, backend, state, from, to, i));
      }
      return run;
    }

    MaintenanceHarness of(String key) {
      return subtasks.get(
          KeyGroupRangeAssignment.assignKeyToParallelOperator(
              key, MaintenanceHarness.MAX_PARALLELISM, subtasks.size()));
    }

    void watermark(long timestampMs) throws Exception {
      for (MaintenanceHarness subtask : subtasks) {
        subtask.watermark(timestampMs);
      }
    }

    List<ComputeBatch.Request> chosen() {
      return subtasks.stream().flatMap(subtask -> subtask.chosen().stream()).toList();
    }

    void forget() {
      subtasks.forEach(MaintenanceHarness::forget);
    }

    double regret() {
      return subtasks.stream()
          .mapToDouble(subtask -> subtask.gauge(MetricNames.ESTIMATED_REGRET))
          .sum();
    }

    double keys() {
      return subtasks.stream().mapToDouble(subtask -> subtask.gauge(MetricNames.KEYS)).sum();
    }

    OperatorSubtaskState snapshot(long checkpoint) throws Exception {
      OperatorSubtaskState[] states = new OperatorSubtaskState[subtasks.size()];
      for (int i = 0; i < states.length; i++) {
        states[i] = subtasks.get(i).snapshot(checkpoint);
      }
      return AbstractStreamOperatorTestHarness.repackageState(states);
    }

    @Override
    public void close() throws Exception {
      for (MaintenanceHarness subtask : subtasks) {
        subtask.close();
      }
    }
  }

  private static List<String> keys() {
    List<String> keys = new ArrayList<>();
    for (int i = 0; i < KEYS; i++) {
      keys.add("key-" + i);
    }
    return keys;
  }

  /** Each key is in one of these states when the snapshot is taken. */
  private static Ending ending(ComputeBatch.Request request) {
    int number = Integer.parseInt(request.key().substring(4));
    if (request.eventTimeMs() < 100) {
      return Ending.OK;
    }
    return number % 3 == 0 ? Ending.NONE : number % 3 == 1 ? Ending.FAILED : Ending.OK;
  }

  @ParameterizedTest
  @EnumSource(
      value = Backend.class,
      names = {"HEAP", "ROCKSDB"})
  void rescalingFrom2To4To1LosesNothing(Backend backend) throws Exception {
    Map<String, Version> newest = new HashMap<>();
    double regret;
    OperatorSubtaskState state;
    try (Run run = Run.start(TABLE, backend, 2)) {
      run.subtasks.forEach(subtask -> subtask.function(MaintenanceRestoreTest::ending));
      for (String key : keys()) {
        run.of(key).event(key, 10);
      }
      run.watermark(100);
      assertThat(run.chosen()).hasSize(KEYS);
      for (ComputeBatch.Request request : run.chosen()) {
        run.of(request.key()).feedback(request.key(), request.version(), 1, 110);
        run.of(request.key()).event(request.key(), 120);
      }
      run.watermark(200);
      assertThat(run.chosen()).hasSize(2 * KEYS);
      run.chosen().forEach(request -> newest.put(request.key(), request.version()));
      // A key of which nothing is decided yet: its event and another's feedback are early.
      run.of("early").event("early", 210);
      ComputeBatch.Request good =
          run.chosen().stream()
              .filter(request -> request.key().equals("key-2") && request.eventTimeMs() == 120)
              .findFirst()
              .orElseThrow();
      run.of("key-2").feedback("key-2", good.version(), 4, 220);
      regret = run.regret();
      assertThat(regret).as("those under way and those that failed").isEqualTo(40);
      state = run.snapshot(1);
    }

    try (Run run = Run.restore(TABLE, backend, state, 2, 4)) {
      assertThat(run.keys()).isEqualTo(KEYS + 1);
      assertThat(run.regret()).isEqualTo(regret);
      run.watermark(300);
      Set<String> expected = new HashSet<>();
      expected.add("early");
      keys().stream()
          .filter(key -> Integer.parseInt(key.substring(4)) % 3 == 0)
          .forEach(expected::add);
      assertThat(run.chosen().stream().map(ComputeBatch.Request::key))
          .as("under way at the snapshot, pending again")
          .containsExactlyInAnyOrderElementsOf(expected);
      expectNewer(newest, run.chosen());
      for (ComputeBatch.Request request : run.chosen()) {
        if (!request.key().equals("early")) {
          assertThat(request.timestamps()).containsExactly(10L, 120L);
          assertThat(request.regretRemoved()).isEqualTo(1);
        }
      }
      run.forget();
      // Once more, with all of them under way.
      run.subtasks.forEach(subtask -> subtask.function(request -> Ending.NONE));
      for (String key : keys()) {
        run.of(key).event(key, 310);
      }
      run.watermark(400);
      assertThat(run.chosen()).hasSize(KEYS);
      run.chosen().stream()
          .filter(request -> request.key().equals("key-2"))
          .forEach(request -> assertThat(request.regretRemoved()).isEqualTo(4));
      expectNewer(newest, run.chosen());
      state = run.snapshot(2);
    }

    try (Run run = Run.restore(TABLE, backend, state, 4, 1)) {
      run.watermark(500);
      assertThat(run.chosen().stream().map(ComputeBatch.Request::key))
          .containsExactlyInAnyOrderElementsOf(keys());
      expectNewer(newest, run.chosen());
      for (ComputeBatch.Request request : run.chosen()) {
        assertThat(request.timestamps()).containsExactly(10L, 120L, 310L);
      }
    }
  }

  private static void expectNewer(
      Map<String, Version> newest, List<ComputeBatch.Request> requests) {
    for (ComputeBatch.Request request : requests) {
      Version before = newest.put(request.key(), request.version());
      assertThat(before == null || before.compareTo(request.version()) < 0)
          .as("%s: %s, then %s", request.key(), before, request.version())
          .isTrue();
    }
  }

  // The harness has no checkpoint coordinator, so it restores from no second incremental snapshot.
  @ParameterizedTest
  @EnumSource(
      value = Backend.class,
      names = {"HEAP", "ROCKSDB"})
  void restoredRunChoosesAsTheUninterruptedOne(Backend backend) throws Exception {
    for (SchedulingPolicy policy : TestSettings.everyPolicy()) {
      TestSettings table = TABLE.with(policy).with(new BudgetSettings.EventTimeStep(1.29, 100, 3));
      for (long seed = 0; seed < (backend == Backend.HEAP ? 10 : 3); seed++) {
        expectSameChoices(table, backend, seed);
      }
    }
    for (long seed = 0; seed < 5; seed++) {
      expectSameChoices(TABLE.computedOnDemand(), backend, seed);
    }
  }

  private static void expectSameChoices(TestSettings table, Backend backend, long seed)
      throws Exception {
    Random random = new Random(seed);
    List<Event> events = Replay.events(random);
    List<Feedback> feedback;
    List<ComputeBatch.Request> expected;
    try (MaintenanceHarness harness = MaintenanceHarness.open(table, backend)) {
      feedback = Replay.record(harness, events, random);
      expected = List.copyOf(harness.chosen());
    }
    List<Replay.Input> inputs = Replay.shuffled(events, feedback, 250, random);
    List<ComputeBatch.Request> actual = new ArrayList<>();
    MaintenanceHarness harness = MaintenanceHarness.open(table, backend);
    try {
      int from = 0;
      for (int cut = 1; cut <= 4; cut++) {
        int to = inputs.size() * cut / 4;
        Replay.deliver(harness, inputs, from, to, random);
        actual.addAll(harness.chosen());
        if (cut < 4) {
          OperatorSubtaskState state = harness.snapshot(cut);
          harness.close();
          harness = MaintenanceHarness.restore(table, backend, state, 1, 1, 0);
        }
        from = to;
      }
    } finally {
      harness.close();
    }
    assertThat(actual).as("%s, seed %s", table.policy().name(), seed).isEqualTo(expected);
  }

  @ParameterizedTest
  @EnumSource(Backend.class)
  void creditIsCarried(Backend backend) throws Exception {
    TestSettings table = TABLE.with(new BudgetSettings.EventTimeStep(0.5, 100, 0));
    OperatorSubtaskState state;
    try (MaintenanceHarness harness = MaintenanceHarness.open(table, backend)) {
      harness.event("a", 10);
      harness.watermark(100);
      assertThat(harness.chosen()).isEmpty();
      state = harness.snapshot(1);
    }
    try (MaintenanceHarness harness = MaintenanceHarness.restore(table, backend, state, 1, 1, 0)) {
      harness.watermark(100);
      assertThat(harness.chosen()).as("the step is not decided twice").isEmpty();
      harness.watermark(200);
      assertThat(harness.chosenKeys()).containsExactly("a");
      assertThat(harness.last().version().timestampMicros()).isEqualTo(200_000);
    }
  }

  @ParameterizedTest
  @EnumSource(Backend.class)
  void fifoKeepsItsPlaceInTheBacklog(Backend backend) throws Exception {
    TestSettings table = TABLE.with(new FifoPolicy()).with(TestSettings.perStep(1));
    OperatorSubtaskState state;
    try (MaintenanceHarness harness = MaintenanceHarness.open(table, backend)) {
      for (int i = 1; i <= 4; i++) {
        harness.event("a", 10L * i);
      }
      harness.watermark(100);
      harness.function(request -> Ending.NONE);
      harness.watermark(200);
      assertThat(harness.last().eventTimeMs()).isEqualTo(20);
      state = harness.snapshot(1);
    }
    try (MaintenanceHarness harness = MaintenanceHarness.restore(table, backend, state, 1, 1, 0)) {
      harness.watermark(1_000);
      assertThat(harness.chosen().stream().map(ComputeBatch.Request::timestamps))
          .containsExactly(List.of(10L, 20L), List.of(10L, 20L, 30L), List.of(10L, 20L, 30L, 40L));
    }
  }
}
