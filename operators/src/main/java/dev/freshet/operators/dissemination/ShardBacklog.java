package dev.freshet.operators.dissemination;

import dev.freshet.connectors.chunk.ChunkEntry;
import dev.freshet.connectors.chunk.KeyChange;
import dev.freshet.connectors.chunk.OffsetRanges;
import java.util.ArrayDeque;
import java.util.Comparator;
import java.util.HashMap;
import java.util.Map;
import java.util.PriorityQueue;
import java.util.TreeMap;

/**
 * The newest unsent change of each key of one shard on one link (Ekko §4.3: log-less), and which
 * offsets a chunk of them covers.
 *
 * <p>A change stands at its offset. One that replaces an unsent one of its key takes that away: who
 * has the newer one need not have the older. Chunks take entries in the order of offsets, so one
 * that leaves f as the smallest offset here covers everything up to f − 1: whatever stood there is
 * in it, in a chunk that covered it, or replaced by what stands at f or later.
 *
 * <p>Example: a@1, b@2, a@3 come in. The entries are b@2 and a@3, uncovered is 1..3. A chunk of one
 * entry takes b and covers 1..2; the next takes a and covers 3.
 *
 * <p>A key that changes all the time would never get its turn where there is always something
 * before it. That is what early chunks are for: they take what is significant or long overdue,
 * cover nothing, and leave the entry where it stands.
 */
final class ShardBacklog {

  private final int shard;
  private final Map<String, BacklogEntry> byKey = new HashMap<>();
  private final TreeMap<Long, BacklogEntry> byOffset = new TreeMap<>();

  /** Every entry once, in the order in which the oldest change that waits came in. */
  private final ArrayDeque<BacklogEntry> byArrival = new ArrayDeque<>();

  /** An entry with the priority that it had when it came into the queue. */
  private record Significant(BacklogEntry entry, double priority) {
    boolean isOutdated() {
      return entry.isGone || entry.earlyPriority != priority;
    }
  }

  /**
   * Entries with a significant change that was not sent early since, the most significant first.
   */
  private final PriorityQueue<Significant> significant =
      new PriorityQueue<>(Comparator.comparingDouble(Significant::priority).reversed());

  /** Offsets whose changes came in and are in no chunk. */
  private final OffsetRanges uncovered = new OffsetRanges();

  /** When what is uncovered should be, for the case that no entry of it is left. */
  private long coverDueMs = Long.MAX_VALUE;

  private long bytes;

  ShardBacklog(int shard) {
    this.shard = shard;
  }

  /** Number of keys with an unsent change. */
  int size() {
    return byKey.size();
  }

  /** Whether there is nothing to send, and nothing to cover. */
  boolean isEmpty() {
    return byKey.isEmpty() && uncovered.isEmpty();
  }

  /** Offsets whose changes came in and are in no chunk. */
  OffsetRanges uncovered() {
    return uncovered;
  }

  /** When what has waited longest is due, ms; {@link Long#MAX_VALUE} if nothing waits. */
  long dueMs() {
    BacklogEntry oldest = firstOf(byArrival);
    return oldest == null ? coverDueMs : oldest.dueMs;
  }

  /** All changes of a range came in: those that are entries now, and those that they replace. */
  void received(long after, long upto, long dueMs) {
    uncovered.add(after, upto);
    coverDueMs = Math.min(coverDueMs, dueMs);
  }

  /**
   * Takes a change in, in place of an older one of its key.
   *
   * @param dueMs when it is due at the destinations
   * @param priorities decide whether it may go out of turn
   * @return by how much the backlog has grown, bytes, about
   */
  long put(KeyChange change, long offset, long dueMs, Priorities priorities) {
    long bytesBefore = bytes;
    BacklogEntry entry = byKey.get(change.key());
    if (entry == null) {
      entry = new BacklogEntry(change, offset, dueMs);
      byKey.put(change.key(), entry);
      byOffset.put(offset, entry);
      byArrival.addLast(entry);
      bytes += entry.bytes();
    } else {
      replace(entry, change, offset);
      entry.dueMs = Math.min(entry.dueMs, dueMs);
    }
    double priority = priorities.priority(entry.change);
    if (priority > entry.earlyPriority && priorities.isSignificant(priority)) {
      entry.earlyPriority = priority;
      significant.add(new Significant(entry, priority));
      if (significant.size() > 2 * byKey.size()) {
        significant.removeIf(Significant::isOutdated);
      }
    }
    return bytes - bytesBefore;
  }

  private void replace(BacklogEntry entry, KeyChange change, long offset) {
    if (change.isNewerThan(entry.change)) {
      bytes -= entry.bytes();
      entry.change = change.inPlaceOf(entry.change);
      bytes += entry.bytes();
    }
    // It stands for both, so it must not be covered before the later one.
    if (offset > entry.offset) {
      byOffset.remove(entry.offset);
      entry.offset = offset;
      byOffset.put(offset, entry);
    }
  }

  /** Moves entries into a chunk, in their turn, up to its size, and covers what that allows. */
  void take(ChunkDraft chunk) {
    while (!byOffset.isEmpty() && !chunk.isFull()) {
      BacklogEntry entry = byOffset.pollFirstEntry().getValue();
      byKey.remove(entry.change.key());
      entry.isGone = true;
      bytes -= entry.bytes();
      chunk.add(new ChunkEntry(shard, entry.offset, entry.change), entry.bytes(), entry.dueMs);
    }
    long next = byOffset.isEmpty() ? Long.MAX_VALUE : byOffset.firstKey();
    chunk.cover(shard, uncovered.takeUpto(next - 1));
    if (byKey.isEmpty()) {
      byArrival.clear();
      significant.clear();
      coverDueMs = Long.MAX_VALUE;
    }
  }

  /** Priority of the most significant entry that may go out of turn; 0 if there is none. */
  double topPriority() {
    while (!significant.isEmpty() && significant.peek().isOutdated()) {
      significant.remove();
    }
    return significant.isEmpty() ? 0 : significant.peek().priority();
  }

  /** Copies the most significant entry into a chunk out of turn. It stays. */
  void takeTop(ChunkDraft chunk) {
    BacklogEntry entry = significant.remove().entry();
    entry.earlyPriority = 0;
    chunk.add(new ChunkEntry(shard, entry.offset, entry.change), entry.bytes(), entry.dueMs);
    entry.change = entry.change.asKnown();
  }

  /**
   * Copies entries into a chunk out of turn that were due before some time. They stay, and their
   * next early turn is a while away.
   *
   * @param overdueMs what was due before it counts as long overdue
   * @param nextDueMs when those are due again
   */
  void takeOverdue(ChunkDraft chunk, long overdueMs, long nextDueMs) {
    while (!chunk.isFull() && dueMs() < overdueMs) {
      BacklogEntry entry = byArrival.removeFirst();
      chunk.add(new ChunkEntry(shard, entry.offset, entry.change), entry.bytes(), entry.dueMs);
      entry.dueMs = nextDueMs;
      byArrival.addLast(entry);
    }
  }

  /** Everything, as it is: for a checkpoint, or to move it to another link. */
  void copyTo(ChunkDraft chunk) {
    byOffset
        .values()
        .forEach(
            entry ->
                chunk.add(
                    new ChunkEntry(shard, entry.offset, entry.change), entry.bytes(), entry.dueMs));
    chunk.cover(shard, uncovered);
  }

  /** The first entry of a queue that is still here. */
  private static BacklogEntry firstOf(ArrayDeque<BacklogEntry> queue) {
    BacklogEntry first = queue.peekFirst();
    while (first != null && first.isGone) {
      queue.removeFirst();
      first = queue.peekFirst();
    }
    return first;
  }
}
