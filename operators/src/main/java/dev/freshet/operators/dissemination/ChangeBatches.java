package dev.freshet.operators.dissemination;

import dev.freshet.connectors.chunk.ChunkEntry;
import dev.freshet.connectors.chunk.Covered;
import dev.freshet.connectors.chunk.OffsetRanges;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.function.BiConsumer;

/** Cuts what a region has missed into batches, so that live changes need not wait for all of it. */
final class ChangeBatches {

  private static final int BATCH_CHANGES = 2_000;

  private ChangeBatches() {}

  /**
   * Hands the changes that stand in some ranges over, batch by batch.
   *
   * @param entries by offset, ascending
   * @param batches takes changes and what they cover; together they cover the ranges
   */
  static void forEach(
      int shard,
      Collection<ChunkEntry> entries,
      OffsetRanges ranges,
      BiConsumer<List<ChunkEntry>, List<Covered>> batches) {
    OffsetRanges uncovered = ranges.copy();
    List<ChunkEntry> batch = new ArrayList<>();
    for (ChunkEntry entry : entries) {
      if (batch.size() >= BATCH_CHANGES) {
        batches.accept(batch, covered(shard, uncovered.takeUpto(entry.offset() - 1)));
        batch = new ArrayList<>();
      }
      batch.add(entry);
    }
    batches.accept(batch, covered(shard, uncovered));
  }

  private static List<Covered> covered(int shard, OffsetRanges ranges) {
    ChunkDraft draft = ChunkDraft.unbounded();
    draft.cover(shard, ranges);
    return draft.coverage();
  }
}
