package dev.freshet.operators.dissemination;

import static org.assertj.core.api.Assertions.assertThat;

import dev.freshet.connectors.chunk.Covered;
import dev.freshet.connectors.testing.Await;
import dev.freshet.schemas.LinkReport;
import dev.freshet.schemas.RegionReport;
import dev.freshet.schemas.Reporter;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.flink.runtime.checkpoint.OperatorSubtaskState;
import org.apache.flink.streaming.util.AbstractStreamOperatorTestHarness;
import org.junit.jupiter.api.Test;

/** Goal: what Flink adds to the dissemination: input, state, rescaling, reports. */
class MulticastOperatorTest {

  private static final String PLAN =
      """
      {"table": "t", "number": 1, "source": "c:home", "destinations": ["c:a", "c:b"],
       "stripes": [{"fraction": 1.0, "edges": [["c:home", "c:a"], ["c:a", "c:b"]]}]}
      """;
  private static final String OTHER_PLAN =
      """
      {"table": "t", "number": 2, "source": "c:home", "destinations": ["c:a", "c:b"],
       "stripes": [{"fraction": 1.0, "edges": [["c:home", "c:a"], ["c:home", "c:b"]]}]}
      """;

  @Test
  void sendsChangesAlongThePlan() throws Exception {
    try (MulticastHarness job = MulticastHarness.open(null, 1, 0)) {
      job.plan(PLAN);
      job.read(3, 10, MulticastHarness.change("k", 1));
      job.read(3, 11, MulticastHarness.change("k", 2));
      elapseUntilSent(job, 1);
      MulticastHarness.Sent chunk = job.sent.get(0);
      assertThat(chunk.region()).isEqualTo("c:a");
      assertThat(chunk.chunk().header().route().children().get(0).region()).isEqualTo("c:b");
      assertThat(chunk.chunk().header().coverage()).containsExactly(new Covered(3, 9, 11));
      assertThat(job.sentTo("c:a")).containsExactly(Map.entry("k", 2L));
    }
  }

  @Test
  void anUnreadableChangeIsADeadLetterAndIsPassedOver() throws Exception {
    try (MulticastHarness job = MulticastHarness.open(null, 1, 0)) {
      job.plan(PLAN);
      job.read(0, 0, MulticastHarness.change("k", 1));
      job.read(0, 1, new byte[] {1, 2, 3});
      job.read(0, 2, MulticastHarness.change("l", 2));
      elapseUntilSent(job, 1);
      assertThat(job.sent.get(0).chunk().header().coverage())
          .containsExactly(new Covered(0, -1, 2));
      assertThat(job.deadLetters())
          .singleElement()
          .satisfies(
              letter ->
                  assertThat(letter.getReason())
                      .startsWith("topic changes.t, partition 0, offset 1: "));
    }
  }

  @Test
  void aBadPlanLeavesTheOneInForce() throws Exception {
    try (MulticastHarness job = MulticastHarness.open(null, 1, 0)) {
      job.plan(PLAN);
      job.plan("{\"table\": \"t\", \"number\": 2}");
      job.plan(
          PLAN.replace("\"number\": 1", "\"number\": 3")
              .replace("c:home\", \"c:a", "c:x\", \"c:a"));
      job.plan("{no json");
      job.read(0, 0, MulticastHarness.change("k", 1));
      elapseUntilSent(job, 1);
      assertThat(job.sent.get(0).chunk().header().plan()).isEqualTo(1);
    }
  }

  @Test
  void reportsThePlanThatIsInForce() throws Exception {
    try (MulticastHarness job = MulticastHarness.open(null, 1, 0)) {
      job.plan(OTHER_PLAN);
      job.plan(PLAN); // older
      job.plan(OTHER_PLAN.replace("\"number\": 2", "\"number\": 2, \"note\": \"again\""));
      job.plan("{\"table\": \"t\", \"number\": 3, \"source\": \"c:home\"}"); // no stripes
      job.plan(PLAN.replace("\"t\"", "\"other\""));
      assertThat(job.lastReport().getPlan()).isEqualTo(OTHER_PLAN);
    }
  }

  @Test
  void reportsWhatItHasReadAndSent() throws Exception {
    try (MulticastHarness job = MulticastHarness.open(null, 1, 0)) {
      job.plan(PLAN);
      job.read(0, 0, MulticastHarness.change("k", 1));
      elapseUntilSent(job, 1);
      job.answer(job.sent.get(0), null);
      job.elapse(System.currentTimeMillis() + 10_000);
      assertThat(job.reports()).isNotEmpty();
      assertThat(job.reports().get(job.reports().size() - 1))
          .satisfies(
              report -> {
                assertThat(report.getReporter()).isEqualTo(Reporter.MULTICAST);
                assertThat(report.getChanges()).isEqualTo(1);
                assertThat(report.getPlan()).contains("\"number\": 1");
                assertThat(report.getLinks())
                    .singleElement()
                    .satisfies(link -> assertThat(link.getChunks()).isEqualTo(1));
              });
    }
  }

  @Test
  void whatIsNotAcknowledgedSurvivesRescaling() throws Exception {
    Map<String, Long> expected = new TreeMap<>();
    OperatorSubtaskState state;
    try (MulticastHarness job = MulticastHarness.open(null, 1, 0)) {
      job.plan(PLAN);
      for (int i = 0; i < 200; i++) {
        String key = "k" + i % 50;
        job.read(shardOf(key), i, MulticastHarness.change(key, i + 1));
        expected.put(key, i + 1L);
        if (i == 100) {
          elapseUntilSent(job, 1);
        }
      }
      // Some is under way, some is not sent.
      assertThat(job.sentTo("c:a")).isNotEqualTo(expected);
      state = job.snapshot();
    }
    Map<String, Long> toA = new TreeMap<>();
    Map<String, Long> toB = new TreeMap<>();
    for (int subtask = 0; subtask < 2; subtask++) {
      OperatorSubtaskState part = MulticastHarness.part(state, 1, 2, subtask);
      try (MulticastHarness job = MulticastHarness.open(part, 2, subtask)) {
        // The way changes: what is under way keeps its own, what waits takes the new one.
        MulticastHarness.Sent underWay = job.sent.get(0);
        job.plan(OTHER_PLAN);
        job.answer(underWay, new IllegalStateException("lost"));
        Await.until(
            "everything was sent",
            () -> {
              job.elapse(System.currentTimeMillis());
              for (MulticastHarness.Sent chunk : List.copyOf(job.sent)) {
                Set<String> destinations = chunk.chunk().header().route().destinations();
                collect(chunk, destinations.contains("c:a") ? toA : new HashMap<>());
                collect(chunk, destinations.contains("c:b") ? toB : new HashMap<>());
                job.answer(chunk, null);
              }
              return job.waits() == 0;
            });
      }
    }
    assertThat(toA).isEqualTo(expected);
    assertThat(toB).isEqualTo(expected);
  }

  @Test
  void goesOnCountingThroughRescaling() throws Exception {
    OperatorSubtaskState first;
    long wireBytes;
    try (MulticastHarness job = MulticastHarness.open(null, 1, 0)) {
      job.plan(PLAN);
      job.read(0, 0, MulticastHarness.change("k", 1));
      job.read(1, 0, MulticastHarness.change("l", 1));
      deliver(job);
      wireBytes = job.lastReport().getLinks().get(0).getWireBytes();
      first = job.snapshot();
    }
    List<OperatorSubtaskState> states = new ArrayList<>();
    long changes = 0;
    for (int subtask = 0; subtask < 2; subtask++) {
      OperatorSubtaskState part = MulticastHarness.part(first, 1, 2, subtask);
      try (MulticastHarness job = MulticastHarness.open(part, 2, subtask)) {
        changes += job.lastReport().getChanges();
        states.add(job.snapshot());
      }
    }
    assertThat(changes).isEqualTo(2);
    OperatorSubtaskState both =
        AbstractStreamOperatorTestHarness.repackageState(
            states.toArray(new OperatorSubtaskState[0]));
    try (MulticastHarness job = MulticastHarness.open(MulticastHarness.part(both, 2, 1, 0), 1, 0)) {
      job.plan(OTHER_PLAN);
      job.read(0, 1, MulticastHarness.change("k", 2));
      deliver(job);
      RegionReport report = job.lastReport();
      assertThat(report.getChanges()).isEqualTo(3);
      assertThat(report.getChangeBytes())
          .isEqualTo(3 * ("k".length() + 1 + BacklogEntry.OVERHEAD_BYTES));
      LinkReport toA = link(report, "c:a");
      LinkReport toB = link(report, "c:b");
      assertThat(toA.getWireBytes()).isGreaterThan(wireBytes);
      assertThat(toA.getRawBytes()).isEqualTo(3 * toB.getRawBytes());
      assertThat(toA.getChunks()).isGreaterThan(toB.getChunks());
    }
  }

  private static LinkReport link(RegionReport report, String to) {
    return report.getLinks().stream()
        .filter(link -> link.getTo().equals(to))
        .findAny()
        .orElseThrow();
  }

  /** Has everything sent and acknowledged. */
  private static void deliver(MulticastHarness job) throws Exception {
    Await.until(
        "everything was sent",
        () -> {
          job.elapse(System.currentTimeMillis());
          for (MulticastHarness.Sent chunk : List.copyOf(job.sent)) {
            job.answer(chunk, null);
          }
          return job.waits() == 0;
        });
  }

  private static void collect(MulticastHarness.Sent chunk, Map<String, Long> versions) {
    chunk
        .entries()
        .forEach(
            entry ->
                versions.merge(
                    entry.change().key(), entry.change().version().timestampMicros(), Math::max));
  }

  private static int shardOf(String key) {
    return Math.floorMod(key.hashCode(), MulticastHarness.SETTINGS.tables().get(0).shards());
  }

  private static void elapseUntilSent(MulticastHarness job, int chunks) throws Exception {
    Await.until(
        chunks + " chunks were sent",
        () -> {
          job.elapse(System.currentTimeMillis());
          return job.sent.size() >= chunks;
        });
  }
}
