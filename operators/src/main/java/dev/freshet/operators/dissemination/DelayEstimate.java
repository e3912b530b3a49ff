package dev.freshet.operators.dissemination;

/**
 * Predicted time of a way, learned from the slowest deliveries: a smoothed mean and deviation, as
 * TCP estimates a round trip (RFC 6298), and no less than what was measured within the last
 * seconds.
 *
 * <p>A chunk leaves as late as the prediction allows, so whatever takes longer than predicted is
 * late: the tail counts, not the mean. Leaving a little earlier costs little.
 */
final class DelayEstimate {

  private static final double MEAN_WEIGHT = 1.0 / 8;
  private static final double DEVIATION_WEIGHT = 1.0 / 4;
  private static final double DEVIATIONS = 2;

  /** What was slow once is forgotten after one to two of these. */
  private static final long SPELL_MS = 10_000;

  private final double unknownMs;
  private double meanMs = Double.NaN;
  private double deviationMs;

  /** The slowest of this spell and of the one before. */
  private double slowestMs;

  private double slowestBeforeMs;
  private long spellBeganMs = Long.MIN_VALUE;

  /**
   * @param unknownMs what is predicted before anything is measured
   */
  DelayEstimate(double unknownMs) {
    this.unknownMs = unknownMs;
  }

  /**
   * A delivery was measured.
   *
   * @param ms that it took
   * @param nowMs of any clock that is the same each time
   */
  void measured(double ms, long nowMs) {
    if (spellBeganMs == Long.MIN_VALUE || nowMs - spellBeganMs >= SPELL_MS) {
      spellBeganMs = nowMs;
      slowestBeforeMs = slowestMs;
      slowestMs = 0;
    }
    slowestMs = Math.max(slowestMs, ms);
    if (Double.isNaN(meanMs)) {
      meanMs = ms;
      deviationMs = ms / 2;
      return;
    }
    deviationMs += DEVIATION_WEIGHT * (Math.abs(ms - meanMs) - deviationMs);
    meanMs += MEAN_WEIGHT * (ms - meanMs);
  }

  /** Time that hardly any will take longer than, ms. */
  double predictedMs() {
    return Double.isNaN(meanMs)
        ? unknownMs
        : Math.max(meanMs + DEVIATIONS * deviationMs, Math.max(slowestMs, slowestBeforeMs));
  }
}
