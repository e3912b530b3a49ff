package dev.freshet.operators.dissemination;

import dev.freshet.connectors.chunk.ChunkEntry;
import dev.freshet.connectors.chunk.Covered;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** The backlogs of the shards whose changes share chunks: one table, one route, one lane. */
final class Lane {

  private final LaneId id;
  private final Priorities priorities;
  private final Map<Integer, ShardBacklog> shards = new HashMap<>();

  /** Predicted time from sending to the last destination of the route, ms. */
  private long pathMs;

  /** Whether something due had to wait since the lane was last level. */
  private boolean isBehind;

  /** Whether the last chunk was an early one, so that the next is one in turn. */
  private boolean wasEarly;

  Lane(LaneId id, Priorities priorities) {
    this.id = id;
    this.priorities = priorities;
  }

  LaneId id() {
    return id;
  }

  Collection<ShardBacklog> shards() {
    return shards.values();
  }

  /** The backlog of a shard. */
  ShardBacklog shard(int shard) {
    return shards.computeIfAbsent(shard, ShardBacklog::new);
  }

  void put(ChunkEntry entry, long dueMs) {
    shard(entry.shard()).put(entry.change(), entry.offset(), dueMs, priorities);
  }

  /** Takes all changes of a chunk, or of what was one, and what it covers. */
  void putAll(List<ChunkEntry> entries, List<Covered> coverage, long dueMs) {
    entries.forEach(entry -> put(entry, dueMs));
    coverage.forEach(
        covered -> shard(covered.shard()).received(covered.after(), covered.upto(), dueMs));
  }

  void predict(long milliseconds) {
    pathMs = milliseconds;
  }

  boolean isEmpty() {
    return shards.values().stream().allMatch(ShardBacklog::isEmpty);
  }

  int size() {
    return shards.values().stream().mapToInt(ShardBacklog::size).sum();
  }

  long bytes() {
    long bytes = 0;
    for (ShardBacklog shard : shards.values()) {
      bytes += shard.bytes();
    }
    return bytes;
  }

  /**
   * When the next chunk must leave so that its oldest change arrives in time, ms (lambda-Replica
   * §5.4, algorithm 4); {@link Long#MAX_VALUE} if nothing waits.
   */
  long leaveAtMs() {
    long due = Long.MAX_VALUE;
    for (ShardBacklog shard : shards.values()) {
      due = Math.min(due, shard.dueMs());
    }
    return due == Long.MAX_VALUE ? due : due - pathMs;
  }

  /** Something that is due had to wait. */
  void fallBehind() {
    isBehind = true;
  }

  boolean isBehind() {
    return isBehind;
  }

  /** All that was due is sent. */
  void catchUp() {
    isBehind = false;
    wasEarly = false;
  }

  /** Copies what may go out of turn; empty if that is nothing, or if it is the others' turn. */
  ChunkDraft takeEarly(long bytesMax, long overdueMs, long nextDueMs) {
    ChunkDraft chunk = new ChunkDraft(bytesMax);
    if (!wasEarly) {
      for (ShardBacklog shard : shards.values()) {
        shard.takeEarly(chunk, overdueMs, nextDueMs);
      }
    }
    wasEarly = !chunk.isEmpty();
    return chunk;
  }

  /** Takes the next chunk, from what is due first. */
  ChunkDraft take(long bytesMax) {
    wasEarly = false;
    ChunkDraft chunk = new ChunkDraft(bytesMax);
    List<ShardBacklog> ordered = new ArrayList<>(shards.values());
    ordered.sort(Comparator.comparingLong(ShardBacklog::dueMs));
    for (ShardBacklog shard : ordered) {
      if (chunk.isFull()) {
        break;
      }
      shard.take(chunk);
    }
    return chunk;
  }
}
