package dev.freshet.operators.dissemination;

/**
 * Predicted time of a way, learned from measured ones: a smoothed mean and deviation, as TCP
 * estimates a round trip (RFC 6298), with twice the deviation as room.
 */
final class DelayEstimate {

  private static final double MEAN_WEIGHT = 1.0 / 8;
  private static final double DEVIATION_WEIGHT = 1.0 / 4;
  private static final double DEVIATIONS = 2;

  private final double unknownMs;
  private double meanMs = Double.NaN;
  private double deviationMs;

  /**
   * @param unknownMs what is predicted before anything is measured
   */
  DelayEstimate(double unknownMs) {
    this.unknownMs = unknownMs;
  }

  void measured(double ms) {
    if (Double.isNaN(meanMs)) {
      meanMs = ms;
      deviationMs = ms / 2;
      return;
    }
    deviationMs += DEVIATION_WEIGHT * (Math.abs(ms - meanMs) - deviationMs);
    meanMs += MEAN_WEIGHT * (ms - meanMs);
  }

  /** Time that most will not take longer than, ms. */
  double predictedMs() {
    return Double.isNaN(meanMs) ? unknownMs : meanMs + DEVIATIONS * deviationMs;
  }
}
