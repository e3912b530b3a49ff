package dev.freshet.operators.dissemination;

import dev.freshet.connectors.chunk.ChunkEntry;
import dev.freshet.connectors.chunk.Covered;
import dev.freshet.connectors.chunk.OffsetRanges;
import java.util.List;
import java.util.Map;

/** The compacted log of a table's changes, which ranges that a region lacks are read from. */
interface ChangeHistory extends AutoCloseable {

  /** Takes what was read; called on another thread than the task's. */
  interface Reader {

    /** The changes of a part of the ranges, and what they cover. */
    void read(List<ChunkEntry> entries, List<Covered> coverage);

    /**
     * That was all.
     *
     * @param failure null if everything was read
     */
    void done(Exception failure);
  }

  /** The offset behind the last record of each shard, now; blocks. */
  Map<Integer, Long> ends(MulticastSettings.Table table);

  /**
   * Reads the changes that stand in some ranges, without blocking the caller. Several requests are
   * served one after the other.
   */
  void read(MulticastSettings.Table table, int shard, OffsetRanges ranges, Reader reader);

  @Override
  void close();
}
