package dev.freshet.operators.dissemination;

import dev.freshet.connectors.chunk.OffsetRanges;

/**
 * What a region lacks of one shard, watched from report to report: what it still lacks after a
 * while was lost, unless the region is just working its way there.
 *
 * <p>Timeline, patience 2 s: at 0 s it lacks 5..9; at 1 s 5..12; at 2 s 5..5 and 10..20 (6 to 9
 * came meanwhile). What lacks at 0 s and at 2 s is 5..5, which stands before something that it
 * knows: lost.
 *
 * <p>What was sent again fills gaps, and much of it takes longer than patience lasts. So nothing is
 * lost while a gap of the region's, of whatever shard, was filled a short while ago; but not for
 * ever, as a bad way may fill small ones all the time.
 */
final class MissingRanges {

  /** So often in a row what lacks is left to arrive. */
  static final int DEFERRALS_MAX = 10;

  /** What lacked at the last report, before something that was known. */
  private OffsetRanges gaps = new OffsetRanges();

  private int deferrals;
  private OffsetRanges earlier = new OffsetRanges();
  private OffsetRanges later = new OffsetRanges();
  private long laterAtMs = Long.MIN_VALUE;
  private long knownUpto = -1;
  private boolean hasAdvanced;

  /**
   * Whether a part of a gap has come since the last report.
   *
   * @param lacking what the region does not know, and nobody has for it
   * @param known what it knows
   */
  boolean isFilling(OffsetRanges lacking, OffsetRanges known) {
    boolean isFilling = !gaps.intersection(lacking).equals(gaps);
    gaps = lacking.copy();
    gaps.remove(last(known), Long.MAX_VALUE);
    return isFilling;
  }

  private static long last(OffsetRanges known) {
    return known.isEmpty() ? -1 : known.upto(known.count() - 1);
  }

  /**
   * Looks at what a report says.
   *
   * @param lacking what the region does not know, and nobody has for it
   * @param known what it knows
   * @param mayArrive whether gaps of the region were filled a short while ago
   * @return what was lost
   */
  OffsetRanges lost(
      OffsetRanges lacking, OffsetRanges known, boolean mayArrive, long nowMs, long patienceMs) {
    long last = last(known);
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
    if (mayArrive && deferrals < DEFERRALS_MAX) {
      deferrals++;
      return new OffsetRanges();
    }
    deferrals = 0;
    return lacking.intersection(earlier);
  }

  /** Starts over: the region has lost what it knew, or something was sent to it. */
  void reset() {
    gaps = new OffsetRanges();
    deferrals = 0;
    earlier = new OffsetRanges();
    later = new OffsetRanges();
    laterAtMs = Long.MIN_VALUE;
    knownUpto = -1;
    hasAdvanced = false;
  }
}
