package dev.freshet.connectors.record;

/**
 * What a model tells about one use of a feature.
 *
 * @param key entity key
 * @param version version of the feature that was used
 * @param error prediction error, at least 0; NaN for a query whose label is not known yet
 * @param timestampMs event time, epoch milliseconds; {@link #NO_TIMESTAMP} when absent
 */
public record Feedback(String key, Version version, double error, long timestampMs) {

  /** Timestamp of feedback that carries none. */
  public static final long NO_TIMESTAMP = -1;

  /** Whether the label is known, so that error is a number. */
  public boolean isLabelled() {
    return !Double.isNaN(error);
  }
}
