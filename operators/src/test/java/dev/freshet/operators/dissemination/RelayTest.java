package dev.freshet.operators.dissemination;

import static dev.freshet.operators.dissemination.RegionHarness.REGION;
import static dev.freshet.operators.dissemination.RegionHarness.TABLE;
import static dev.freshet.operators.dissemination.RegionHarness.upsert;
import static org.assertj.core.api.Assertions.assertThat;

import dev.freshet.connectors.chunk.ChunkCodec;
import dev.freshet.connectors.chunk.ChunkEntry;
import dev.freshet.connectors.chunk.ChunkHeader;
import dev.freshet.connectors.chunk.Covered;
import dev.freshet.connectors.chunk.Route;
import dev.freshet.operators.dissemination.RecordedTransport.Sent;
import dev.freshet.schemas.Purpose;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.flink.metrics.groups.UnregisteredMetricsGroup;
import org.apache.flink.util.clock.ManualClock;
import org.junit.jupiter.api.Test;

/**
 * Goal: what waits for a next hop is given up when that is silent for long or the log is another,
 * and nothing of it is believed. Method: a relay with a clock and links that the test moves.
 */
final class RelayTest {

  private static final String CHILD = "c:child";
  private static final Route CHILD_ONLY = Route.direct(CHILD);
  private static final Route THROUGH = new Route(REGION, false, List.of(CHILD_ONLY));
  private static final long RETENTION_MS = 60_000;

  private final ManualClock clock = new ManualClock(Duration.ofHours(1).toNanos());
  private final RecordedTransport transport = new RecordedTransport();
  private final ChunkCodec codec = new ChunkCodec();
  private final Relay relay =
      new Relay(
          RegionSettings.parse("{\"region\": \"" + REGION + "\"}"),
          transport,
          (what, work) -> work.run(),
          clock,
          new UnregisteredMetricsGroup());

  private void forward(String log, long at, String key) throws Exception {
    ChunkHeader header =
        new ChunkHeader(
            at,
            "c:home",
            TABLE,
            log,
            Purpose.LIVE,
            1,
            0,
            THROUGH,
            Map.of(CHILD, 5L),
            List.of(new Covered(0, at - 1, at)),
            at,
            clock.absoluteTimeMillis() + 500);
    byte[] bytes = codec.encode(header, List.of(upsert(0, at, key, at)));
    relay.forward(new Arrival(3, codec.decode(bytes), 0, codec), CHILD_ONLY);
  }

  private long backlogKeys() {
    return relay.reports().get(0).getBacklogKeys();
  }

  private void pass(long milliseconds) {
    clock.advanceTime(Duration.ofMillis(milliseconds));
    relay.tidy();
    relay.pump();
  }

  @Test
  void whatWaitsForASilentLinkIsGivenUp() throws Exception {
    forward("log", 1, "a");
    transport.take().forEach(Sent::fail);
    assertThat(backlogKeys()).isEqualTo(1);
    for (int i = 2; i < 6; i++) {
      pass(RETENTION_MS / 5);
      transport.take().forEach(Sent::fail);
      forward("log", i, "k" + i);
    }
    assertThat(backlogKeys()).isEqualTo(5);
    pass(RETENTION_MS / 5 + 1);
    assertThat(backlogKeys()).isZero();
    forward("log", 6, "b");
    List<Sent> sent = transport.take();
    sent.get(sent.size() - 1).acknowledge();
    forward("log", 7, "c");
    transport.take().forEach(Sent::fail);
    pass(RETENTION_MS / 2);
    List<Sent> again = transport.take();
    assertThat(again).as("it was heard, so what waits is kept").hasSize(1);
    assertThat(again.get(0).entries()).extracting(ChunkEntry::offset).containsExactly(7L);
  }

  @Test
  void offsetsOfAnotherLogAreNotMistaken() throws Exception {
    forward("old", 1, "a");
    forward("old", 2, "b");
    List<Sent> old = transport.take();
    old.get(0).fail();
    forward("old", 3, "c");
    assertThat(backlogKeys()).isEqualTo(2);
    forward("new", 1, "a");
    old.get(1).fail();
    pass(1_000);
    for (Sent sent : transport.take()) {
      assertThat(sent.chunk().header().log()).isEqualTo("new");
      assertThat(sent.chunk().header().coverage()).containsExactly(new Covered(0, 0, 1));
    }
    assertThat(relay.unacknowledged(3)).hasSize(1);
  }

  @Test
  void aChunkOfARelayTellsWhatThoseThatItTookInTold() throws Exception {
    forward("log", 1, "a");
    Sent first = transport.take().get(0);
    first.fail();
    forward("log", 2, "b");
    clock.advanceTime(Duration.ofMillis(300));
    relay.pump();
    Sent made = transport.take().get(0);
    ChunkHeader header = made.chunk().header();
    assertThat(header.sender()).isEqualTo(REGION);
    assertThat(header.sentAtMicros()).as("that of the newest").isEqualTo(2);
    assertThat(header.deadlineMs())
        .as("that of the oldest")
        .isEqualTo(clock.absoluteTimeMillis() - 300 + 500);
    assertThat(header.clocksAhead()).containsExactly(Map.entry(CHILD, 5L));
    assertThat(header.coverage()).containsExactly(new Covered(0, 0, 2));
    assertThat(made.lane()).isEqualTo(3);
    made.acknowledge();
    relay.tidy();
    assertThat(relay.unacknowledged(3)).isEmpty();
  }

  @Test
  void stateHoldsWhatIsNotAcknowledged() throws Exception {
    forward("log", 1, "a");
    forward("log", 2, "b");
    List<Sent> sent = transport.take();
    sent.get(0).fail();
    List<Covered> covered = new ArrayList<>();
    for (byte[] chunk : relay.unacknowledged(3)) {
      assertThat(codec.decode(chunk).header().route()).isEqualTo(CHILD_ONLY);
      covered.addAll(codec.decode(chunk).header().coverage());
    }
    assertThat(covered).containsExactlyInAnyOrder(new Covered(0, 0, 1), new Covered(0, 1, 2));
    assertThat(relay.unacknowledged(4)).isEmpty();
  }
}
