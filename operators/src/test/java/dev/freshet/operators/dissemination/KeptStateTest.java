package dev.freshet.operators.dissemination;

import static dev.freshet.operators.dissemination.RegionHarness.REGION;
import static dev.freshet.operators.dissemination.RegionHarness.TABLE;
import static dev.freshet.operators.dissemination.RegionHarness.live;
import static dev.freshet.operators.dissemination.RegionHarness.upsert;
import static org.assertj.core.api.Assertions.assertThat;

import dev.freshet.connectors.chunk.Covered;
import dev.freshet.connectors.chunk.Route;
import dev.freshet.connectors.store.StoreLayout;
import dev.freshet.connectors.testing.Await;
import dev.freshet.connectors.testing.TestRedis;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Stream;
import org.apache.flink.runtime.checkpoint.OperatorSubtaskState;
import org.apache.flink.streaming.util.OperatorSnapshotUtil;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * What earlier builds wrote of changes on their way is read by this one: each folder of
 * tests/data/operator-states is of a release. Whole jobs are restored by
 * tests/integration/test_kept_savepoints.py, where topics are new ones, so that nothing that waits
 * for them is left.
 *
 * <p>{@code -Dfreshet.write-states=<release>} writes a folder.
 */
@Timeout(120)
final class KeptStateTest {

  private static final Path FOLDER = Path.of("..", "tests", "data", "operator-states");
  private static final String WRITE = "freshet.write-states";
  private static final String MULTICAST = "multicast";
  private static final String REGIONAL = "region";
  private static final int SHARDS = 8;
  private static final String NEXT = "c:next";
  private static final Route THROUGH =
      new Route(REGION, true, List.of(new Route(NEXT, true, List.of())));
  private static final String PLAN =
      """
      {"table": "t", "number": 1, "source": "c:home", "destinations": ["c:a"],
       "stripes": [{"fraction": 1.0, "edges": [["c:home", "c:a"]]}]}
      """;

  static List<Path> releases() throws IOException {
    write();
    try (Stream<Path> folders = Files.list(FOLDER)) {
      return folders.sorted().toList();
    }
  }

  private static void write() throws IOException {
    String release = System.getProperty(WRITE);
    if (release == null || Files.exists(FOLDER.resolve(release))) {
      return;
    }
    Path folder = Files.createDirectories(FOLDER.resolve(release));
    try {
      OperatorSnapshotUtil.writeStateHandle(multicastState(), folder.resolve(MULTICAST).toString());
      OperatorSnapshotUtil.writeStateHandle(regionState(), folder.resolve(REGIONAL).toString());
    } catch (Exception e) {
      throw new IOException("cannot write the states of " + release, e);
    }
  }

  private static OperatorSubtaskState read(Path release, String operator) throws Exception {
    return OperatorSnapshotUtil.readStateHandle(release.resolve(operator).toString());
  }

  /** In every shard a change that was replaced and one that was not wait, and nothing was sent. */
  private static OperatorSubtaskState multicastState() throws Exception {
    try (MulticastHarness job = MulticastHarness.open(null, 1, 0)) {
      job.plan(PLAN);
      for (int shard = 0; shard < SHARDS; shard++) {
        job.read(shard, 4, MulticastHarness.change("k" + shard, 1));
        job.read(shard, 5, MulticastHarness.change("k" + shard, 2));
        job.read(shard, 6, MulticastHarness.change("l" + shard, 3));
      }
      return job.snapshot();
    }
  }

  /** A store and a next hop that have not answered, for one partition of the inbox each. */
  private static OperatorSubtaskState regionState() throws Exception {
    try (TestRedis frozen = TestRedis.start();
        RegionHarness region = RegionHarness.open(frozen.url())) {
      region.receive(0, live(-1, 3, upsert(0, 3, "a", 3)));
      region.awaitKnown(-1, 3);
      frozen.signal("STOP");
      try {
        region.receive(0, live(3, 4, upsert(0, 4, "b", 4)));
        region.receive(1, live(THROUGH, List.of(new Covered(1, -1, 5)), upsert(1, 5, "c", 5)));
        region.run();
        return region.flink.snapshot(1, 1);
      } finally {
        frozen.signal("CONT");
      }
    }
  }

  @ParameterizedTest
  @MethodSource("releases")
  void whatWaitedForALinkLeaves(Path release) throws Exception {
    OperatorSubtaskState state = read(release, MULTICAST);
    Map<String, Long> newest = new TreeMap<>();
    List<Covered> covered = new ArrayList<>();
    long changes = 0;
    for (int subtask = 0; subtask < 2; subtask++) {
      OperatorSubtaskState part = MulticastHarness.part(state, 1, 2, subtask);
      try (MulticastHarness job = MulticastHarness.open(part, 2, subtask)) {
        Await.until(
            "everything was sent",
            () -> {
              job.elapse(System.currentTimeMillis());
              newest.putAll(job.sentTo("c:a"));
              for (MulticastHarness.Sent chunk : List.copyOf(job.sent)) {
                covered.addAll(chunk.chunk().header().coverage());
                job.answer(chunk, null);
              }
              return job.waits() == 0;
            });
        changes += job.lastReport().getChanges();
      }
    }
    Map<String, Long> expected = new TreeMap<>();
    List<Covered> all = new ArrayList<>();
    for (int shard = 0; shard < SHARDS; shard++) {
      expected.put("k" + shard, 2L);
      expected.put("l" + shard, 3L);
      all.add(new Covered(shard, 3, 6));
    }
    assertThat(newest).isEqualTo(expected);
    assertThat(covered).containsExactlyInAnyOrderElementsOf(all);
    assertThat(changes).as("counters go on").isEqualTo(3L * SHARDS);
  }

  @ParameterizedTest
  @MethodSource("releases")
  void whatAStoreAndANextHopHadNotAnsweredIsDoneAgain(Path release) throws Exception {
    try (TestRedis redis = TestRedis.start();
        RegionHarness region =
            RegionHarness.open(
                redis.url(),
                RegionHarness.settings(true, TABLE),
                List.of(read(release, REGIONAL)),
                1,
                0)) {
      region.await("the store has what was being applied", () -> keys(redis).size() == 2);
      assertThat(keys(redis)).containsExactly("b", "c");
      region.await("the next hop gets its part", () -> !region.transport.sent.isEmpty());
      RecordedTransport.Sent sent = region.transport.sent.get(0);
      assertThat(sent.region()).isEqualTo(NEXT);
      assertThat(sent.chunk().header().coverage()).containsExactly(new Covered(1, -1, 5));
      assertThat(sent.entries().get(0).change().key()).isEqualTo("c");
      assertThat(region.awaitReport().getEpoch()).as("the store is another one").isEqualTo(2);
      assertThat(region.last().getApplied()).as("one before, two now").isEqualTo(3);
    }
  }

  private static TreeSet<String> keys(TestRedis redis) {
    TreeSet<String> found = new TreeSet<>();
    try (TestRedis.Inspector inspector = redis.inspect()) {
      for (String key : List.of("a", "b", "c")) {
        if (inspector.commands().get(StoreLayout.key("", TABLE, key)) != null) {
          found.add(key);
        }
      }
    }
    return found;
  }
}
