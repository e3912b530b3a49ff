package dev.freshet.operators.dissemination;

import static org.assertj.core.api.Assertions.assertThat;

import dev.freshet.connectors.chunk.ChunkEntry;
import dev.freshet.connectors.chunk.KeyChange;
import dev.freshet.connectors.chunk.Route;
import dev.freshet.connectors.record.Version;
import dev.freshet.schemas.Purpose;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.apache.flink.util.clock.ManualClock;
import org.junit.jupiter.api.Test;

/**
 * Goal: changes leave as late as they may, and significant ones do not wait for others. Method: a
 * link with a clock and acknowledgements that the test gives.
 */
class LinkTest {

  private static final long SLO_MS = 5_000;
  private static final long PATH_MS = 400;
  private static final int VALUE_BYTES = 1_000;

  /** A chunk as it was sent. */
  private record Made(Purpose purpose, List<ChunkEntry> entries) {}

  private final ManualClock clock = new ManualClock(Duration.ofHours(1).toNanos());
  private final RecordedTransport transport = new RecordedTransport();
  private final List<Made> made = new ArrayList<>();
  private final Priorities priorities = new Priorities(new PriorityQuantile(0.01), 1);
  private final Link link =
      new Link("c:away", transport, this::encode, (what, work) -> work.run(), clock, new Answers());
  private final Lane lane =
      link.lane(new LaneId("t", false, 1, 0, Route.direct("c:away"), 0), priorities);
  private long offset;

  private Link.Encoded encode(LaneId id, Purpose purpose, ChunkDraft draft) {
    made.add(new Made(purpose, List.copyOf(draft.entries())));
    return new Link.Encoded(new byte[(int) draft.bytes()], draft.bytes());
  }

  private final class Answers implements Link.Listener {
    @Override
    public void acknowledged(Link ofLink, SentChunk chunk) {
      link.pump();
    }

    @Override
    public void failed(Link ofLink, SentChunk chunk) {
      throw new AssertionError("the test lets nothing fail");
    }
  }

  private void put(String key, double regret) {
    KeyChange change =
        new KeyChange(
            key, new Version(++offset, 1), 0, 0, 0, false, (float) regret, new byte[VALUE_BYTES]);
    priorities.observe(change);
    lane.put(0, change, offset, clock.absoluteTimeMillis() + SLO_MS);
    lane.received(0, offset - 1, offset, clock.absoluteTimeMillis() + SLO_MS);
  }

  private void pass(long milliseconds) {
    clock.advanceTime(Duration.ofMillis(milliseconds));
    link.pump();
  }

  private List<String> keysSent() {
    return made.stream()
        .flatMap(chunk -> chunk.entries().stream())
        .map(entry -> entry.change().key())
        .toList();
  }

  @Test
  void whatFillsChunksStaysUntilItIsDueForNewerChangesToReplaceIt() {
    lane.predict(PATH_MS, SLO_MS / 8);
    for (int i = 0; i < 1_000; i++) {
      put("k" + i % 200, 1);
      link.pump();
    }
    assertThat(lane.bytes()).isGreaterThan(2 * link.window().chunkBytesMax());
    assertThat(made).as("nothing is due").isEmpty();
    assertThat(link.nextLeaveMs())
        .isEqualTo(clock.absoluteTimeMillis() + SLO_MS - PATH_MS - Link.MARGIN_MS);
    pass(SLO_MS - PATH_MS);
    for (int roundTrip = 0; roundTrip < 10; roundTrip++) {
      transport.take().forEach(RecordedTransport.Sent::acknowledge);
      pass(Lane.LINGER_MS);
    }
    assertThat(keysSent()).hasSize(200).doesNotHaveDuplicates();
  }

  @Test
  void moreThanTheLinkTakesQuicklyLeavesAtOnce() {
    lane.predict(PATH_MS, SLO_MS / 8);
    while (made.isEmpty()) {
      put("k" + offset, 1);
      link.pump();
    }
    assertThat(offset * VALUE_BYTES)
        .isBetween(9 * LinkWindow.CHUNK_BYTES_MAX / 10, LinkWindow.CHUNK_BYTES_MAX);
  }

  @Test
  void significantChangesPassAFullWindowButNotOneByOne() {
    for (int i = 0; i < 1_000; i++) {
      put("k" + i, 1);
    }
    pass(SLO_MS);
    assertThat(link.window().hasRoom()).as("until something is acknowledged").isFalse();
    Lane idle = link.lane(new LaneId("t", false, 1, 0, Route.direct("c:away"), 1), priorities);
    pass(1_000);
    assertThat(lane.isBehind()).isTrue();
    assertThat(idle.isBehind()).as("it has nothing to send").isFalse();
    made.clear();
    for (int i = 0; i < 10; i++) {
      put("top" + i, 1e6);
      pass(Lane.EARLY_LINGER_MS / 5);
    }
    assertThat(made).extracting(Made::purpose).containsOnly(Purpose.EARLY);
    assertThat(made).hasSizeBetween(2, 4);
    pass(Lane.EARLY_LINGER_MS);
    assertThat(keysSent())
        .containsExactlyInAnyOrder(
            "top0", "top1", "top2", "top3", "top4", "top5", "top6", "top7", "top8", "top9");
    made.clear();
    pass(10 * Lane.EARLY_LINGER_MS);
    assertThat(made).as("what was sent early waits for its turn").isEmpty();
    for (int roundTrip = 0; roundTrip < 50; roundTrip++) {
      transport.take().forEach(RecordedTransport.Sent::acknowledge);
      pass(Lane.LINGER_MS);
    }
    assertThat(lane.isEmpty()).isTrue();
    assertThat(link.report().getBehind()).as("all is sent").isFalse();
  }
}
