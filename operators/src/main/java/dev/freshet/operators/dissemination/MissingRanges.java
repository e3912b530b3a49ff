package dev.freshet.operators.dissemination;

import dev.freshet.connectors.chunk.OffsetRanges;

/**
 * What a region lacks of one shard, watched from report to report: what it still lacks after a
 * while was lost, unless the region is just working its way there.
 *
 * <p>Timeline, patience 2 s: at 0 s it lacks 5..9; at 1 s 5..12; at 2 s 5..5 and 10..20 (6 to 9
 * came meanwhile). What lacks at 0 s and at 2 s is 5..5, which stands before something that it
 * knows: lost.
 */
final class MissingRanges {

  private OffsetRanges earlier = new OffsetRanges();
  private OffsetRanges later = new OffsetRanges();
  private long laterAtMs = Long.MIN_VALUE;
  private long knownUpto = -1;
  private boolean hasAdvanced;

  /**
   * Looks at what a report says.
   *
   * @param lacking what the region does not know, and nobody has for it
   * @param known what it knows
   * @return what was lost
   */
  OffsetRanges lost(OffsetRanges lacking, OffsetRanges known, long nowMs, long patienceMs) {
    long last = known.isEmpty() ? -1 : known.upto(known.count() - 1);
    hasAdvanced |= last > knownUpto;
    knownUpto = Math.max(knownUpto, last);
    if (laterAtMs == Long.MIN_VALUE || nowMs - laterAtMs >= patienceMs) {
      boolean isFirst = laterAtMs == Long.MIN_VALUE;
      earlier = isFirst ? new OffsetRanges() : later;
      if (hasAdvanced && !isFirst) {
        // Behind all that it knows it may still be under way.
        earlier.remove(last, Long.MAX_VALUE);
      }
      later = lacking.copy();
      laterAtMs = nowMs;
      hasAdvanced = false;
    } else {
      return new OffsetRanges();
    }
    return lacking.intersection(earlier);
  }

  /** Starts over: the region has lost what it knew, or something was sent to it. */
  void reset() {
    earlier = new OffsetRanges();
    later = new OffsetRanges();
    laterAtMs = Long.MIN_VALUE;
    knownUpto = -1;
    hasAdvanced = false;
  }
}
