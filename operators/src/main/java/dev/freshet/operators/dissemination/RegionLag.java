package dev.freshet.operators.dissemination;

import dev.freshet.connectors.chunk.OffsetRanges;
import java.util.HashMap;
import java.util.Map;

/**
 * For how long a region has not had all of a table, from what it reports to know.
 *
 * <p>Timeline of one shard: at 0 s home has read up to offset 9, which is the mark; at 1 s the
 * region knows all up to 9, so it was complete as of 0 s, and the next mark is 14, where home is
 * then; at 2 s and 3 s it lacks 12, so it is behind by 1 s, by 2 s, and on.
 */
final class RegionLag {

  /** What a region must know next. */
  private static final class Mark {
    long offset;
    long setAtMs;
    long completeAsOfMs;

    Mark(long offset, long nowMs) {
      this.offset = offset;
      this.setAtMs = nowMs;
      this.completeAsOfMs = nowMs;
    }
  }

  private final Map<Integer, Mark> shards = new HashMap<>();

  /** Read by the thread of the metrics. */
  private volatile long completeAsOfMs;

  /**
   * A report came.
   *
   * @param known what the region knows of the shard
   * @param head offset up to which home has read it; negative if nothing
   */
  void reported(int shard, OffsetRanges known, long head, long nowMs) {
    Mark mark = shards.computeIfAbsent(shard, key -> new Mark(head, nowMs));
    if (mark.offset < 0 || known.contains(-1, mark.offset)) {
      mark.completeAsOfMs = mark.setAtMs;
      mark.offset = head;
      mark.setAtMs = nowMs;
    }
    completeAsOfMs =
        shards.values().stream().mapToLong(each -> each.completeAsOfMs).min().orElse(0);
  }

  /** Milliseconds since what the region has was all that there was; 0 before the first report. */
  long behindMs(long nowMs) {
    return completeAsOfMs == 0 ? 0 : Math.max(0, nowMs - completeAsOfMs);
  }
}
