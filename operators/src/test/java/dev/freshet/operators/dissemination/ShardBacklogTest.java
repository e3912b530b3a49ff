package dev.freshet.operators.dissemination;

import static org.assertj.core.api.Assertions.assertThat;

import dev.freshet.connectors.chunk.KeyChange;
import dev.freshet.connectors.record.Version;
import org.junit.jupiter.api.Test;

/** Goal: what a change stands for that takes another's place. */
class ShardBacklogTest {

  private final ShardBacklog backlog = new ShardBacklog(0);
  private final Priorities priorities = new Priorities(new PriorityQuantile(0.1), 1);

  @Test
  void whoTakesTheFirstValuesPlaceIsTheFirst() {
    put(1, true);
    put(2, false);
    assertThat(taken().isFirst()).isTrue();
    put(3, false);
    assertThat(taken().isFirst()).as("the first is on its way").isFalse();
  }

  @Test
  void onceItWentOutOfTurnTheKeyIsKnown() {
    for (int i = 0; i < 1_000; i++) {
      priorities.observe(change(1, false));
    }
    put(1, true);
    ChunkDraft early = ChunkDraft.unbounded();
    assertThat(backlog.topPriority()).isPositive();
    backlog.takeTop(early);
    assertThat(early.entries()).singleElement().matches(entry -> entry.change().isFirst());
    put(2, false);
    assertThat(taken().isFirst()).isFalse();
  }

  @Test
  void aDeleteIsNoFirstValue() {
    put(1, true);
    backlog.put(
        new KeyChange("k", new Version(2, 1), 0, 0, KeyChange.DELETE, false, 0, new byte[0]),
        2,
        0,
        priorities);
    assertThat(taken().isFirst()).isFalse();
  }

  @Test
  void whoTakesAnothersPlaceRemovesItsRegret() {
    put(1, 8);
    put(2, 1);
    assertThat(taken().regretRemoved()).isEqualTo(8);
    put(3, 1);
    assertThat(taken().regretRemoved()).as("the other is on its way").isEqualTo(1);
  }

  @Test
  void onceItWentOutOfTurnItsRegretIsRemoved() {
    for (int i = 0; i < 1_000; i++) {
      priorities.observe(change(1, false));
    }
    put(1, 8);
    ChunkDraft early = ChunkDraft.unbounded();
    backlog.takeTop(early);
    assertThat(early.entries())
        .singleElement()
        .matches(entry -> entry.change().regretRemoved() == 8);
    put(2, 1);
    assertThat(backlog.topPriority()).isZero();
    assertThat(taken().regretRemoved()).isEqualTo(1);
  }

  private void put(long version, boolean isFirst) {
    backlog.put(change(version, isFirst), version, 0, priorities);
  }

  private void put(long version, float regret) {
    KeyChange change =
        new KeyChange("k", new Version(version, 1), 0, 0, 0, false, regret, new byte[0]);
    backlog.put(change, version, 0, priorities);
  }

  private static KeyChange change(long version, boolean isFirst) {
    return new KeyChange("k", new Version(version, 1), 0, 0, 0, isFirst, 1, new byte[0]);
  }

  private KeyChange taken() {
    ChunkDraft draft = ChunkDraft.unbounded();
    backlog.take(draft);
    assertThat(draft.entries()).hasSize(1);
    return draft.entries().get(0).change();
  }
}
