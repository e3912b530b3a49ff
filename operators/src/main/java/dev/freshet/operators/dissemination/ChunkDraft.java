package dev.freshet.operators.dissemination;

import dev.freshet.connectors.chunk.ChunkEntry;
import dev.freshet.connectors.chunk.Covered;
import dev.freshet.connectors.chunk.OffsetRanges;
import java.util.ArrayList;
import java.util.List;

/** A chunk that is being put together. */
final class ChunkDraft {

  private final long bytesMax;
  private final List<ChunkEntry> entries = new ArrayList<>();
  private final List<Covered> coverage = new ArrayList<>();
  private long bytes;
  private long dueMs = Long.MAX_VALUE;

  /**
   * @param bytesMax before compression; the last entry may go beyond
   */
  ChunkDraft(long bytesMax) {
    this.bytesMax = bytesMax;
  }

  /** A draft that takes everything. */
  static ChunkDraft unbounded() {
    return new ChunkDraft(Long.MAX_VALUE);
  }

  void add(ChunkEntry entry, int entryBytes, long entryDueMs) {
    entries.add(entry);
    bytes += entryBytes;
    dueMs = Math.min(dueMs, entryDueMs);
  }

  void cover(int shard, OffsetRanges ranges) {
    for (int i = 0; i < ranges.count(); i++) {
      coverage.add(new Covered(shard, ranges.after(i), ranges.upto(i)));
    }
  }

  void coverAll(List<Covered> ranges) {
    coverage.addAll(ranges);
  }

  /** The same in parts that a chunk can hold, all that it covers in the last. */
  List<ChunkDraft> split(int entriesMax, long partBytesMax) {
    List<ChunkDraft> parts = new ArrayList<>();
    ChunkDraft part = new ChunkDraft(partBytesMax);
    for (ChunkEntry entry : entries) {
      if (part.isFull() || part.entries.size() >= entriesMax) {
        parts.add(part);
        part = new ChunkDraft(partBytesMax);
      }
      part.add(entry, BacklogEntry.bytes(entry.change()), dueMs);
    }
    part.coverAll(coverage);
    if (!part.isEmpty()) {
      parts.add(part);
    }
    return parts;
  }

  boolean isFull() {
    return bytes >= bytesMax;
  }

  boolean isEmpty() {
    return entries.isEmpty() && coverage.isEmpty();
  }

  List<ChunkEntry> entries() {
    return entries;
  }

  List<Covered> coverage() {
    return coverage;
  }

  /** Size before compression, bytes, about. */
  long bytes() {
    return bytes;
  }

  /** When its oldest change is due, ms; {@link Long#MAX_VALUE} if it has none. */
  long dueMs() {
    return dueMs;
  }
}
