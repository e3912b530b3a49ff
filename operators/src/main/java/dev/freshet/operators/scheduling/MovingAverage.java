package dev.freshet.operators.scheduling;

/** Exponentially weighted mean: old measurements fade as new ones come. */
final class MovingAverage {

  /** Weight of the newest measurement. */
  static final double WEIGHT = 0.2;

  private MovingAverage() {}

  /** The mean with one more measurement; the first measurement is the mean. NaN is no mean yet. */
  static double next(double mean, double newest) {
    return Double.isNaN(mean) ? newest : mean + WEIGHT * (newest - mean);
  }
}
