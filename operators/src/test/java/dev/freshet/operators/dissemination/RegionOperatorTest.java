package dev.freshet.operators.dissemination;

import static dev.freshet.operators.dissemination.RegionHarness.HERE;
import static dev.freshet.operators.dissemination.RegionHarness.REGION;
import static dev.freshet.operators.dissemination.RegionHarness.TABLE;
import static dev.freshet.operators.dissemination.RegionHarness.delete;
import static dev.freshet.operators.dissemination.RegionHarness.known;
import static dev.freshet.operators.dissemination.RegionHarness.live;
import static dev.freshet.operators.dissemination.RegionHarness.upsert;
import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.tuple;

import dev.freshet.connectors.chunk.ChunkCodec;
import dev.freshet.connectors.chunk.ChunkEntry;
import dev.freshet.connectors.chunk.Covered;
import dev.freshet.connectors.chunk.OffsetRanges;
import dev.freshet.connectors.chunk.Route;
import dev.freshet.connectors.store.StoreLayout;
import dev.freshet.connectors.store.StoredValue;
import dev.freshet.connectors.testing.TestRedis;
import dev.freshet.operators.dissemination.RecordedTransport.Sent;
import dev.freshet.schemas.DeadLetter;
import dev.freshet.schemas.Purpose;
import dev.freshet.schemas.RegionReport;
import dev.freshet.schemas.Stage;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.apache.flink.runtime.checkpoint.OperatorSubtaskState;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Goal: what comes to a region is in its store and on its way to the next hops, and the region
 * claims no more than it has, whatever happens to chunks, to the store, to links and to the job.
 * Method: the operator in Flink's harness, with a real Redis and links that the test answers for.
 */
@Timeout(120)
final class RegionOperatorTest {

  private static final String CHILD = "c:child";
  private static final Route THROUGH =
      new Route(REGION, true, List.of(new Route(CHILD, true, List.of())));

  private static TestRedis redis;

  @BeforeAll
  static void start() throws Exception {
    redis = TestRedis.start();
  }

  @AfterAll
  static void stop() throws Exception {
    redis.close();
  }

  @BeforeEach
  void flush() {
    try (TestRedis.Inspector inspector = redis.inspect()) {
      inspector.commands().flushall();
    }
  }

  private static StoredValue stored(String key) {
    try (TestRedis.Inspector inspector = redis.inspect()) {
      byte[] value = inspector.commands().get(StoreLayout.key("", TABLE, key));
      return value == null ? null : StoreLayout.decode(value);
    }
  }

  private static long version(String key) {
    return stored(key).version().timestampMicros();
  }

  @Test
  void whatIsInTheStoreIsKnown() throws Exception {
    try (RegionHarness region = RegionHarness.open(redis.url())) {
      region.receive(live(-1, 9, upsert(0, 3, "a", 3), upsert(0, 9, "b", 9)));
      region.awaitKnown(-1, 9);
      assertThat(version("a")).isEqualTo(3);
      assertThat(version("b")).isEqualTo(9);
      RegionReport report =
          region.reports().stream().filter(r -> r.getEcho() != null).findFirst().orElseThrow();
      assertThat(report.getRegion()).isEqualTo(REGION);
      assertThat(report.getTable()).isEqualTo(TABLE);
      assertThat(report.getApplies()).isTrue();
      assertThat(report.getEpoch()).isEqualTo(1);
      assertThat(report.getApplied()).isEqualTo(2);
      assertThat(report.getLate()).isZero();
      assertThat(report.getFreshness().getCount()).isEqualTo(2);
      assertThat(report.getFreshness().getP50Ms()).isBetween(9_800.0, 30_000.0);
      assertThat(report.getDelay().getMaxMs()).isBetween(999.0, 20_000.0);
      assertThat(report.getEcho().getAppliedAtMicros())
          .isGreaterThanOrEqualTo(report.getEcho().getReceivedAtMicros());
      assertThat(region.awaitReport().getEcho()).as("an echo is told once").isNull();
    }
  }

  @Test
  void aTableIsReportedBeforeItCame() throws Exception {
    try (RegionHarness region = RegionHarness.open(redis.url())) {
      RegionReport report = region.awaitReport();
      assertThat(report.getTable()).isEqualTo(TABLE);
      assertThat(report.getKnowledge()).isEmpty();
      try (TestRedis.Inspector inspector = redis.inspect()) {
        region.await(
            "clients find the table",
            () ->
                Arrays.equals(
                    "{\"ttl_ms\": 7}".getBytes(UTF_8),
                    inspector
                        .commands()
                        .hget("freshet:tables".getBytes(UTF_8), TABLE.getBytes(UTF_8))));
      }
    }
    try (RegionHarness region = RegionHarness.open("redis://127.0.0.1:" + TestRedis.freePort())) {
      for (int i = 0; i < 100; i++) {
        region.run();
      }
      assertThat(region.reports()).as("what it has is not known").isEmpty();
    }
  }

  @Test
  void chunksComeInAnyOrderAndTwice() throws Exception {
    try (RegionHarness region = RegionHarness.open(redis.url())) {
      byte[] later = live(4, 9, upsert(0, 9, "a", 9));
      region.receive(later);
      region.awaitKnown(4, 9);
      assertThat(known(region.last(), 0)).isEqualTo(OffsetRanges.of(4, 9));
      region.receive(later);
      region.receive(live(-1, 4, upsert(0, 2, "a", 2), upsert(0, 3, "b", 3)));
      region.awaitKnown(-1, 9);
      assertThat(version("a")).isEqualTo(9);
      assertThat(version("b")).isEqualTo(3);
      assertThat(region.last().getApplied()).isEqualTo(2);
      assertThat(region.last().getSuperseded()).isEqualTo(2);
    }
  }

  @Test
  void whatIsDeletedStaysSo() throws Exception {
    try (RegionHarness region = RegionHarness.open(redis.url())) {
      region.receive(live(-1, 5, delete(0, 5, "a", 5)));
      region.receive(live(-1, 3, upsert(0, 3, "a", 3)));
      region.await("both are answered", () -> region.awaitReport().getSuperseded() == 1);
      assertThat(stored("a").tombstone()).isTrue();
      try (TestRedis.Inspector inspector = redis.inspect()) {
        assertThat(inspector.commands().pttl(StoreLayout.key("", TABLE, "a"))).isPositive();
      }
    }
  }

  @Test
  void earlyChunksAreAppliedAndCoverNothing() throws Exception {
    try (RegionHarness region = RegionHarness.open(redis.url())) {
      region.receive(
          new ChunkCodec()
              .encode(
                  RegionHarness.header(TABLE, Purpose.EARLY, HERE, List.of()),
                  List.of(upsert(0, 7, "a", 7))));
      region.await("it is applied", () -> region.awaitReport().getApplied() == 1);
      assertThat(region.last().getKnowledge()).isEmpty();
      region.receive(
          new ChunkCodec()
              .encode(
                  RegionHarness.header(
                      TABLE, Purpose.CATCH_UP, HERE, List.of(new Covered(0, -1, 8))),
                  List.of(upsert(0, 7, "a", 7), upsert(0, 8, "b", 8))));
      region.awaitKnown(-1, 8);
      assertThat(region.last().getCaughtUp()).isEqualTo(1);
      assertThat(region.last().getSuperseded()).isEqualTo(1);
    }
  }

  @Test
  void whatCannotBeUsedIsSetAside() throws Exception {
    try (RegionHarness region = RegionHarness.open(redis.url())) {
      byte[] damaged = live(-1, 3, upsert(0, 3, "a", 3));
      damaged[damaged.length - 9] ^= 1;
      region.receive(damaged);
      region.receive(live(Route.direct("c:elsewhere"), List.of(), upsert(0, 1, "a", 1)));
      region.receive(new byte[0]);
      region.receive(live(3, 4, upsert(0, 4, "b", 4)));
      region.awaitKnown(3, 4);
      assertThat(stored("a")).isNull();
      assertThat(region.last().getRefused()).isEqualTo(2);
      assertThat(known(region.last(), 0)).isEqualTo(OffsetRanges.of(3, 4));
      assertThat(region.deadLetters())
          .extracting(DeadLetter::getStage, DeadLetter::getTopic, DeadLetter::getOffset)
          .containsExactly(
              tuple(Stage.REGION, "inbox.c.here", 0L), tuple(Stage.REGION, "inbox.c.here", 1L));
      assertThat(region.deadLetters().get(0).getReason()).contains("checksum");
      assertThat(region.deadLetters().get(1).getReason()).contains("c:elsewhere");
    }
  }

  @Test
  void whatIsNotOursInTheStoreIsLeftAlone() throws Exception {
    try (TestRedis.Inspector inspector = redis.inspect();
        RegionHarness region = RegionHarness.open(redis.url())) {
      byte[] foreign = "somebody else's".getBytes(UTF_8);
      inspector.commands().set(StoreLayout.key("", TABLE, "a"), foreign);
      region.receive(live(-1, 3, upsert(0, 3, "a", 3)));
      region.awaitKnown(-1, 3);
      assertThat(inspector.commands().get(StoreLayout.key("", TABLE, "a"))).isEqualTo(foreign);
      assertThat(region.deadLetters()).hasSize(1);
    }
  }

  // Relays.

  @Test
  void aChunkGoesOnAsItIs() throws Exception {
    try (RegionHarness region = RegionHarness.open(redis.url())) {
      byte[] chunk = live(THROUGH, List.of(new Covered(0, -1, 3)), upsert(0, 3, "a", 3));
      region.receive(2, chunk);
      Sent sent = region.transport.take().get(0);
      assertThat(sent.region()).isEqualTo(CHILD);
      assertThat(sent.lane()).isEqualTo(2);
      assertThat(sent.chunk().header().route()).isEqualTo(THROUGH.children().get(0));
      assertThat(sent.chunk().header().sender()).isEqualTo("c:home");
      assertThat(sent.entries()).hasSize(1);
      sent.acknowledge();
      region.await(
          "the link has delivered it",
          () -> region.awaitReport().getLinks().get(0).getChunks() == 1);
      assertThat(region.last().getLinks().get(0).getWireBytes()).isEqualTo(sent.bytes().length);
      region.awaitKnown(-1, 3);
    }
  }

  @Test
  void aLinkThatIsBehindCoalesces() throws Exception {
    try (RegionHarness region = RegionHarness.open(null)) {
      Route through = new Route(REGION, false, THROUGH.children());
      Random random = new Random(1);
      byte[] large = new byte[2 * (int) UnderWay.BYTES_INITIAL];
      random.nextBytes(large);
      region.receive(
          live(through, List.of(new Covered(0, -1, 0)), upsert(0, 0, "large", 1, large)));
      Sent filling = region.transport.take().get(0);
      region.receive(
          live(through, List.of(new Covered(0, 0, 2)), upsert(0, 1, "a", 1), upsert(0, 2, "b", 2)));
      region.receive(live(through, List.of(new Covered(0, 2, 3)), upsert(0, 3, "a", 3)));
      region.run();
      assertThat(region.transport.sent).as("the window is full").isEmpty();
      filling.acknowledge();
      region.await("the link is no longer behind", () -> !region.transport.sent.isEmpty());
      Sent next = region.transport.take().get(0);
      assertThat(next.chunk().header().sender()).isEqualTo(REGION);
      assertThat(next.chunk().header().log()).isEqualTo(RegionHarness.LOG);
      assertThat(next.chunk().header().coverage()).containsExactly(new Covered(0, 0, 3));
      assertThat(next.entries())
          .extracting(ChunkEntry::offset, entry -> entry.change().key())
          .containsExactlyInAnyOrder(tuple(2L, "b"), tuple(3L, "a"));
      long left = next.chunk().header().deadlineMs() - System.currentTimeMillis();
      assertThat(left).isBetween(20_000L, 60_000L);
    }
  }

  @Test
  void aChunkThatFailsGoesAgain() throws Exception {
    try (RegionHarness region = RegionHarness.open(null)) {
      Route through = new Route(REGION, false, THROUGH.children());
      region.receive(live(through, List.of(new Covered(0, -1, 3)), upsert(0, 3, "a", 3)));
      region.transport.take().get(0).fail();
      region.await("it is sent again", () -> !region.transport.sent.isEmpty());
      Sent again = region.transport.take().get(0);
      again.fail();
      region.await("and again", () -> !region.transport.sent.isEmpty());
      Sent third = region.transport.take().get(0);
      assertThat(third.chunk().header().coverage()).containsExactly(new Covered(0, -1, 3));
      assertThat(third.entries()).hasSize(1);
      third.acknowledge();
      region.await(
          "nothing waits", () -> region.awaitReport().getLinks().get(0).getInFlightBytes() == 0);
    }
  }

  @Test
  void aWaypointKeepsNothing() throws Exception {
    try (RegionHarness region = RegionHarness.open(null)) {
      region.receive(live(THROUGH, List.of(new Covered(0, -1, 3)), upsert(0, 3, "a", 3)));
      assertThat(region.transport.sent).hasSize(1);
      RegionReport report = region.awaitReport();
      assertThat(report.getApplies()).isFalse();
      assertThat(report.getKnowledge()).isEmpty();
      assertThat(report.getLinks()).hasSize(1);
    }
  }

  @Test
  void aStoreThatIsAwayHoldsUpNobodyElse() throws Exception {
    try (TestRedis own = TestRedis.start();
        RegionHarness region = RegionHarness.open(own.url())) {
      region.awaitReport();
      own.kill();
      ChunkEntry[] many = new ChunkEntry[100_000];
      for (int i = 0; i < many.length; i++) {
        many[i] = upsert(0, i, "k" + i, 1);
      }
      region.receive(live(THROUGH, List.of(new Covered(0, -1, many.length - 1)), many));
      region.transport.take().forEach(Sent::acknowledge);
      region.run();
      region.receive(
          live(THROUGH, List.of(new Covered(0, 99_999, 100_000)), upsert(0, 100_000, "k", 1)));
      assertThat(region.transport.sent).as("it is sent on").hasSize(1);
      own.restart();
      region.await("the store is back", () -> region.awaitReport().getApplied() == many.length);
      assertThat(region.last().getEpoch()).isEqualTo(2);
      region.receive(
          live(THROUGH, List.of(new Covered(0, 100_000, 100_001)), upsert(0, 100_001, "m", 1)));
      region.awaitKnown(100_000, 100_001);
      assertThat(known(region.last(), 0))
          .as("what was not applied is not known, nor what began before the loss")
          .isEqualTo(OffsetRanges.of(100_000, 100_001));
    }
  }

  // Losses and restarts.

  @Test
  void aStoreThatLostItsDataStartsAnEpoch() throws Exception {
    try (TestRedis own = TestRedis.start()) {
      OperatorSubtaskState state;
      try (RegionHarness region = RegionHarness.open(own.url())) {
        region.receive(live(-1, 3, upsert(0, 3, "a", 3)));
        region.awaitKnown(-1, 3);
        own.kill();
        region.receive(live(3, 4, upsert(0, 4, "b", 4)));
        own.restart();
        region.await("the loss is noticed", () -> region.last().getEpoch() == 2);
        assertThat(region.last().getKnowledge()).isEmpty();
        region.receive(live(4, 5, upsert(0, 5, "c", 5)));
        region.awaitKnown(4, 5);
        assertThat(known(region.last(), 0)).isEqualTo(OffsetRanges.of(4, 5));
        state = region.flink.snapshot(1, 1);
      }
      try (RegionHarness region = reopen(own.url(), state)) {
        region.awaitKnown(4, 5);
        assertThat(region.last().getEpoch()).isEqualTo(2);
        state = region.flink.snapshot(2, 2);
      }
      own.kill();
      own.restart();
      try (RegionHarness region = reopen(own.url(), state)) {
        RegionReport report = region.awaitReport();
        assertThat(report.getEpoch()).isEqualTo(3);
        assertThat(report.getKnowledge()).isEmpty();
      }
    }
  }

  @Test
  void aStoreThatWasFlushedStartsAnEpoch() throws Exception {
    OperatorSubtaskState state;
    try (RegionHarness region = RegionHarness.open(redis.url())) {
      region.receive(live(-1, 3, upsert(0, 3, "a", 3)));
      region.awaitKnown(-1, 3);
      flush();
      region.receive(live(3, 4, upsert(0, 4, "b", 4)));
      region.await("the loss is noticed", () -> region.last().getEpoch() == 2);
      assertThat(region.last().getKnowledge()).isEmpty();
      region.receive(live(4, 5, upsert(0, 5, "c", 5)));
      region.awaitKnown(4, 5);
      state = region.flink.snapshot(1, 1);
    }
    try (RegionHarness region = reopen(redis.url(), state)) {
      region.awaitKnown(4, 5);
      assertThat(region.last().getEpoch()).as("the same life of the same server").isEqualTo(2);
    }
    flush();
    try (RegionHarness region = reopen(redis.url(), state)) {
      RegionReport report = region.awaitReport();
      assertThat(report.getEpoch()).isEqualTo(3);
      assertThat(report.getKnowledge()).isEmpty();
    }
  }

  private static RegionHarness reopen(String url, OperatorSubtaskState state) throws Exception {
    return RegionHarness.open(url, RegionHarness.settings(true, TABLE), List.of(state), 1, 0);
  }

  @Test
  void whatIsUnderWaySurvivesARestart() throws Exception {
    try (TestRedis own = TestRedis.start()) {
      OperatorSubtaskState state;
      int partitions = 8;
      try (RegionHarness region = RegionHarness.open(own.url())) {
        for (int partition = 0; partition < partitions; partition++) {
          region.receive(
              partition, live(THROUGH, covered(partition, -1, 3), upsert(partition, 3, "a", 3)));
        }
        region.await(
            "all is known", () -> region.awaitReport().getKnowledge().size() == partitions);
        region.transport.take().forEach(Sent::acknowledge);
        own.signal("STOP");
        for (int partition = 0; partition < partitions; partition++) {
          String key = "k" + partition;
          region.receive(
              partition, live(THROUGH, covered(partition, 3, 9), upsert(partition, 9, key, 9)));
        }
        region.run();
        state = region.flink.snapshot(1, 1);
        own.signal("CONT");
      }
      List<Sent> sent = new ArrayList<>();
      long applied = 0;
      for (int subtask = 0; subtask < 2; subtask++) {
        try (RegionHarness region =
            RegionHarness.open(
                own.url(), RegionHarness.settings(true, TABLE), List.of(state), 2, subtask)) {
          region.await(
              "all that is here is known",
              () ->
                  region.awaitReport().getKnowledge().stream()
                      .allMatch(of -> of.getRanges().equals(List.of(-1L, 9L))));
          region.await(
              "all is sent again",
              () ->
                  region.awaitReport().getLinks().stream()
                      .allMatch(link -> link.getBacklogKeys() == 0));
          assertThat(region.last().getKnowledge()).as("both have some").isNotEmpty();
          assertThat(region.last().getParallelism()).isEqualTo(2);
          applied += region.last().getApplied() + region.last().getSuperseded();
          sent.addAll(region.transport.take());
        }
      }
      assertThat(applied).as("counters go on, in one of them").isEqualTo(2L * partitions);
      List<Covered> again = new ArrayList<>();
      for (Sent one : sent) {
        again.addAll(one.chunk().header().coverage());
      }
      List<Covered> expected = new ArrayList<>();
      for (int partition = 0; partition < partitions; partition++) {
        expected.addAll(covered(partition, 3, 9));
      }
      assertThat(again).containsExactlyInAnyOrderElementsOf(expected);
      try (TestRedis.Inspector inspector = own.inspect()) {
        assertThat(inspector.commands().get(StoreLayout.key("", TABLE, "k7"))).isNotNull();
      }
    }
  }

  private static List<Covered> covered(int shard, long after, long upto) {
    return List.of(new Covered(shard, after, upto));
  }

  @Test
  void subtasksThatNoticedALossAtDifferentTimesAgree() throws Exception {
    try (TestRedis own = TestRedis.start()) {
      OperatorSubtaskState unaware;
      OperatorSubtaskState aware;
      String settings = RegionHarness.settings(true, TABLE);
      try (RegionHarness first = RegionHarness.open(own.url(), settings, List.of(), 2, 0);
          RegionHarness second = RegionHarness.open(own.url(), settings, List.of(), 2, 1)) {
        first.awaitReport();
        second.awaitReport();
        unaware = first.flink.snapshot(1, 1);
        own.kill();
        own.restart();
        second.await("it notices", () -> second.last().getEpoch() == 2);
        aware = second.flink.snapshot(1, 1);
      }
      try (RegionHarness region =
          RegionHarness.open(own.url(), settings, List.of(unaware, aware), 1, 0)) {
        assertThat(region.awaitReport().getEpoch()).isEqualTo(3);
      }
    }
  }

  @Test
  void settingsSayWhatIsWrong() {
    assertThatThrownBy(
            () ->
                RegionSettings.parse(
                    "{\"region\": \"\", \"early_share\": 2,"
                        + " \"tables\": [{\"table\": \"t\", \"keep_versions\": 99}]}"))
        .hasMessageContaining("region is missing")
        .hasMessageContaining("early_share is 2")
        .hasMessageContaining("keep_versions of t is 99");
    assertThat(RegionSettings.parse("{\"region\": \"c:here\"}").reportIntervalMs())
        .isEqualTo(1_000);
  }
}
