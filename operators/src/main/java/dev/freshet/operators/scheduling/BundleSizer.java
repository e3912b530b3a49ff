package dev.freshet.operators.scheduling;

/**
 * How many keys to compute in one call: as many as take some tens of milliseconds, so that the cost
 * of a call is spread over cheap computations and a choice is never far from its regret for
 * expensive ones.
 */
final class BundleSizer {

  private final double targetNanos;
  private final int maxKeys;
  private double meanNanos = Double.NaN;

  BundleSizer(long targetMs, int maxKeys) {
    this.targetNanos = targetMs * 1e6;
    this.maxKeys = maxKeys;
  }

  void measured(long computeNanos) {
    meanNanos = MovingAverage.next(meanNanos, Math.max(1, computeNanos));
  }

  /** Keys in the next batch; 1 while nothing was measured. */
  int keys() {
    if (Double.isNaN(meanNanos)) {
      return 1;
    }
    return (int) Math.max(1, Math.min(maxKeys, targetNanos / meanNanos));
  }
}
