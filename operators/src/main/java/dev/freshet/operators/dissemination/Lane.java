package dev.freshet.operators.dissemination;

import dev.freshet.connectors.chunk.ChunkEntry;
import dev.freshet.connectors.chunk.Covered;
import dev.freshet.connectors.chunk.KeyChange;
import dev.freshet.connectors.chunk.OffsetRanges;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/** The backlogs of the shards whose changes share chunks: one table, one route, one lane. */
final class Lane {

  /** A lone change waits this long for company, however late it is. */
  static final long LINGER_MS = 5;

  /**
   * The same for what passes others: each chunk takes something from a link that has too little.
   */
  static final long EARLY_LINGER_MS = 100;

  private final LaneId id;
  private final Priorities priorities;
  private final Set<String> destinations;
  private final Map<Integer, ShardBacklog> shards = new HashMap<>();

  /** Size of all entries before compression, bytes, about. */
  private long bytes;

  /** When what has waited longest is due, ms; {@link Long#MAX_VALUE} if nothing waits. */
  private long dueMs = Long.MAX_VALUE;

  /** Predicted time from sending to the last destination of the route, ms. */
  private long pathMs;

  /** Time on the link that may be filled before anything is due, ms. */
  private long fillMs;

  private long sentAtMs;

  /** Whether something due had to wait since the lane was last level. */
  private boolean isBehind;

  /** Whether the last chunk was an early one, so that the next is one in turn. */
  private boolean wasEarly;

  private long earlySentAtMs;

  Lane(LaneId id, Priorities priorities) {
    this.id = id;
    this.priorities = priorities;
    this.destinations = id.route().destinations();
  }

  LaneId id() {
    return id;
  }

  /** Regions that apply what goes along this lane's route. */
  Set<String> destinations() {
    return destinations;
  }

  Collection<ShardBacklog> shards() {
    return shards.values();
  }

  /** The backlog of a shard, if it has been here. */
  Optional<ShardBacklog> backlog(int shard) {
    return Optional.ofNullable(shards.get(shard));
  }

  /** Offsets of a shard whose changes came in and are in no chunk. */
  Optional<OffsetRanges> uncovered(int shard) {
    return backlog(shard).map(ShardBacklog::uncovered);
  }

  /** Takes a change of a range that {@link #received} is told of. */
  void put(int shard, KeyChange change, long offset, long due) {
    bytes += shard(shard).put(change, offset, due, priorities);
    dueMs = Math.min(dueMs, due);
  }

  /** All changes of a range are in the lane, or replaced. */
  void received(int shard, long after, long upto, long due) {
    shard(shard).received(after, upto, due);
    dueMs = Math.min(dueMs, due);
  }

  /** Takes all changes of a chunk, or of what was to be one, and what it covers. */
  void putAll(List<ChunkEntry> entries, List<Covered> coverage, long due) {
    entries.forEach(entry -> put(entry.shard(), entry.change(), entry.offset(), due));
    coverage.forEach(range -> received(range.shard(), range.after(), range.upto(), due));
  }

  private ShardBacklog shard(int shard) {
    return shards.computeIfAbsent(shard, ShardBacklog::new);
  }

  /**
   * Sets how long things take.
   *
   * @param pathMs predicted time to the last destination
   * @param fillMs what is collected before it is due takes at most so long on the link, unless it
   *     fits into one chunk
   */
  void predict(long pathMs, long fillMs) {
    this.pathMs = pathMs;
    this.fillMs = fillMs;
  }

  /** Time on the link that may be filled before anything is due, ms. */
  long fillMs() {
    return fillMs;
  }

  boolean isEmpty() {
    return dueMs == Long.MAX_VALUE;
  }

  /** Number of keys with an unsent change. */
  int size() {
    return shards.values().stream().mapToInt(ShardBacklog::size).sum();
  }

  long bytes() {
    return bytes;
  }

  /**
   * When the next chunk must leave so that its oldest change arrives in time, ms (lambda-Replica
   * §5.4, algorithm 4); {@link Long#MAX_VALUE} if nothing waits.
   *
   * @param marginMs to leave that much earlier
   */
  long leaveAtMs(long marginMs) {
    return isEmpty() ? Long.MAX_VALUE : Math.max(latestMs(marginMs), sentAtMs + LINGER_MS);
  }

  /**
   * When the next chunk should have left at the latest, though it may be alone then, ms; {@link
   * Long#MAX_VALUE} if nothing waits.
   *
   * @param marginMs to leave that much earlier
   */
  long latestMs(long marginMs) {
    return isEmpty() ? Long.MAX_VALUE : dueMs - pathMs - marginMs;
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

  /**
   * Copies what may go out of turn; empty if that is nothing, or if it is the others' turn. The
   * most significant of all shards come first, as there may be room for only some, and then what is
   * long overdue: in a long congestion that is everything.
   */
  ChunkDraft takeEarly(long bytesMax, long overdueMs, long nextDueMs) {
    ChunkDraft chunk = new ChunkDraft(bytesMax);
    if (!wasEarly) {
      addSignificant(chunk);
      byDue().forEach(shard -> shard.takeOverdue(chunk, overdueMs, nextDueMs));
    }
    wasEarly = !chunk.isEmpty();
    return chunk;
  }

  /**
   * When what is significant may pass all that waits, ms; {@link Long#MAX_VALUE} if there is
   * nothing of it, or nothing to pass.
   */
  long significantAtMs() {
    return isBehind && top() != null ? earlySentAtMs + EARLY_LINGER_MS : Long.MAX_VALUE;
  }

  /** Copies what is significant, the most significant first. */
  ChunkDraft takeSignificant(long bytesMax, long nowMs) {
    ChunkDraft chunk = new ChunkDraft(bytesMax);
    addSignificant(chunk);
    earlySentAtMs = nowMs;
    return chunk;
  }

  private void addSignificant(ChunkDraft chunk) {
    ShardBacklog top = top();
    while (top != null && !chunk.isFull()) {
      top.takeTop(chunk);
      top = top();
    }
  }

  /** The shard with the most significant entry that may go out of turn; null if there is none. */
  private ShardBacklog top() {
    ShardBacklog top = null;
    for (ShardBacklog shard : shards.values()) {
      if (shard.topPriority() > (top == null ? 0 : top.topPriority())) {
        top = shard;
      }
    }
    return top;
  }

  private List<ShardBacklog> byDue() {
    List<ShardBacklog> ordered = new ArrayList<>(shards.values());
    ordered.sort(Comparator.comparingLong(ShardBacklog::dueMs));
    return ordered;
  }

  /** Takes the next chunk, from what is due first. */
  ChunkDraft take(long bytesMax, long nowMs) {
    wasEarly = false;
    sentAtMs = nowMs;
    ChunkDraft chunk = new ChunkDraft(bytesMax);
    List<ShardBacklog> ordered = byDue();
    for (ShardBacklog shard : ordered) {
      if (chunk.isFull()) {
        break;
      }
      shard.take(chunk);
    }
    bytes -= chunk.bytes();
    dueMs = Long.MAX_VALUE;
    ordered.forEach(shard -> dueMs = Math.min(dueMs, shard.dueMs()));
    return chunk;
  }
}
