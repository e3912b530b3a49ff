package dev.freshet.connectors.record;

/**
 * What a model tells about one use of a feature, or that someone is waiting for one.
 *
 * @param key entity key
 * @param version newest version of the feature that the query saw; {@link Version#NONE} when it
 *     found no value, and for a demand
 * @param error error of the prediction that was served, from whichever kept version, at least 0;
 *     NaN for a query whose label is not known yet, and for a demand
 * @param timestampMs event time, epoch milliseconds; {@link #NO_TIMESTAMP} when absent
 * @param demand whether a reader waits for a newer value of the key
 */
public record Feedback(
    String key, Version version, double error, long timestampMs, boolean demand) {

  /** Timestamp of feedback that carries none. */
  public static final long NO_TIMESTAMP = -1;

  /** Feedback on a query. */
  public Feedback(String key, Version version, double error, long timestampMs) {
    this(key, version, error, timestampMs, false);
  }

  /** A demand for a newer value of the key. */
  public static Feedback ofDemand(String key, long timestampMs) {
    return new Feedback(key, Version.NONE, Double.NaN, timestampMs, true);
  }

  /** Whether the label is known, so that error is a number. */
  public boolean isLabelled() {
    return !Double.isNaN(error);
  }
}
