package dev.freshet.operators.dissemination;

import static org.assertj.core.api.Assertions.assertThat;

import dev.freshet.connectors.chunk.ChunkEntry;
import dev.freshet.connectors.chunk.KeyChange;
import dev.freshet.connectors.chunk.Route;
import dev.freshet.connectors.record.Version;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** What goes out of turn on a lane that has been behind for long, so that all of it is overdue. */
class LaneTest {

  private static final int CHUNK_BYTES = 2_000;
  private static final long DUE_MS = 1_000;
  private static final long NOW_MS = 100_000;

  private Priorities priorities;
  private Lane lane;

  @BeforeEach
  void setUp() {
    priorities = new Priorities(new PriorityQuantile(0.01), 1);
    lane = new Lane(new LaneId("t", false, 1, 0, Route.direct("a:b"), 0), priorities);
    for (int i = 0; i < 2_000; i++) {
      priorities.observe(change("k", i % 100 == 0 ? 50 : 1));
    }
  }

  @Test
  void aSignificantChangeOfAnyShardComesBeforeWhatIsOverdueInOthers() {
    for (int i = 0; i < 500; i++) {
      put(i % 2, i, 1, DUE_MS + i);
    }
    put(3, 500, 100, DUE_MS + 500);
    ChunkDraft early = lane.takeEarly(CHUNK_BYTES, NOW_MS, NOW_MS);
    assertThat(early.entries().get(0).change().key()).isEqualTo("k500");
    assertThat(early.isFull()).as("the rest is what is overdue").isTrue();
    assertThat(early.coverage()).isEmpty();
  }

  @Test
  void theMostSignificantChangesOfAllShardsComeFirst() {
    for (int i = 0; i < 200; i++) {
      put(i % 3, i, 100 + i, DUE_MS);
    }
    // A newer change that removes less does not take the place of the key's own significance.
    put(199 % 3, 199, 1, DUE_MS);
    List<ChunkEntry> early = lane.takeEarly(CHUNK_BYTES, 0, NOW_MS).entries();
    assertThat(early).hasSizeGreaterThan(5);
    for (int i = 0; i < early.size(); i++) {
      assertThat(early.get(i).change().key()).isEqualTo("k" + (199 - i));
    }
  }

  @Test
  void whatIsOverdueInEachShardHasItsTurn() {
    for (int i = 0; i < 500; i++) {
      put(i % 2, i, 1, DUE_MS + i);
    }
    boolean[] seen = new boolean[2];
    for (int turn = 0; turn < 60; turn++) {
      for (ChunkEntry entry : lane.takeEarly(CHUNK_BYTES, NOW_MS, NOW_MS).entries()) {
        seen[entry.shard()] = true;
      }
      lane.take(1, NOW_MS);
    }
    assertThat(seen).containsOnly(true);
  }

  private void put(int shard, long offset, double regret, long dueMs) {
    lane.put(shard, change("k" + offset, regret), offset, dueMs);
    lane.received(shard, offset - 1, offset, dueMs);
  }

  private static KeyChange change(String key, double regret) {
    return new KeyChange(key, new Version(1, 1), 0, 0, 0, false, (float) regret, new byte[32]);
  }
}
