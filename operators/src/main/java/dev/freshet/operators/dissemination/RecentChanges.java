package dev.freshet.operators.dissemination;

import dev.freshet.connectors.chunk.ChunkEntry;
import dev.freshet.connectors.chunk.KeyChange;
import dev.freshet.connectors.chunk.OffsetRanges;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * The update cache of a shard (Ekko §4.4.1): the newest change of each key that changed behind some
 * offset, which plays the part of the dominator version vector: ranges that begin there or later
 * can be answered from here.
 */
final class RecentChanges {

  private final int shard;
  private final long bytesMax;

  /** By offset, ascending: a key that changes moves to the end, as one that is accessed does. */
  private final Map<String, ChunkEntry> byKey = new LinkedHashMap<>(16, 0.75f, true);

  private long prunedUpto;
  private long bytes;

  /**
   * @param startsAfter offset before the first change that will be added
   * @param bytesMax of the changes that are kept
   */
  RecentChanges(int shard, long startsAfter, long bytesMax) {
    this.shard = shard;
    this.prunedUpto = startsAfter;
    this.bytesMax = bytesMax;
  }

  /** Takes a change in; where an older version comes later, the newer one stands for both. */
  void add(KeyChange change, long offset) {
    ChunkEntry replaced = byKey.put(change.key(), new ChunkEntry(shard, offset, change));
    if (replaced == null) {
      bytes += size(change);
    } else if (replaced.change().isNewerThan(change)) {
      byKey.put(change.key(), new ChunkEntry(shard, offset, replaced.change()));
    } else {
      bytes += size(change) - size(replaced.change());
    }
    if (bytes > bytesMax) {
      prune();
    }
  }

  private void prune() {
    Iterator<ChunkEntry> oldest = byKey.values().iterator();
    while (bytes > bytesMax && oldest.hasNext()) {
      ChunkEntry entry = oldest.next();
      oldest.remove();
      bytes -= size(entry.change());
      prunedUpto = entry.offset();
    }
  }

  private static int size(KeyChange change) {
    return change.key().length() + change.value().length + BacklogEntry.OVERHEAD_BYTES;
  }

  /** Whether every range begins where the cache does, or later. */
  boolean reachesBackTo(OffsetRanges ranges) {
    return ranges.isEmpty() || ranges.after(0) >= prunedUpto;
  }

  /** The changes that stand in some ranges. */
  List<ChunkEntry> in(OffsetRanges ranges) {
    List<ChunkEntry> found = new ArrayList<>();
    for (ChunkEntry entry : byKey.values()) {
      if (ranges.contains(entry.offset() - 1, entry.offset())) {
        found.add(entry);
      }
    }
    return found;
  }
}
