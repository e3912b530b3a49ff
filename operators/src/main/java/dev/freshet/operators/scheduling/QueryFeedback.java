package dev.freshet.operators.scheduling;

import dev.freshet.connectors.record.Feedback;
import dev.freshet.connectors.record.Version;
import java.util.Comparator;

/**
 * What feedback on one query tells the key's record.
 *
 * @param version newest version that the query saw; {@link Version#NONE} when there was no value
 * @param error error of the prediction that was served; NaN without a label
 * @param newestError error of the newest version; NaN unless both are known
 * @param previousError error of the version before it; NaN unless both are known
 */
record QueryFeedback(Version version, double error, double newestError, double previousError)
    implements Comparable<QueryFeedback> {

  private static final Comparator<QueryFeedback> ORDER =
      Comparator.comparing(QueryFeedback::version)
          .thenComparingDouble(QueryFeedback::error)
          .thenComparingDouble(QueryFeedback::newestError)
          .thenComparingDouble(QueryFeedback::previousError);

  /** Feedback that tells of one version. */
  static QueryFeedback of(Version version, double error) {
    return new QueryFeedback(version, error, Double.NaN, Double.NaN);
  }

  static QueryFeedback of(Feedback feedback) {
    return feedback.isPaired()
        ? new QueryFeedback(
            feedback.version(), feedback.error(), feedback.newestError(), feedback.previousError())
        : of(feedback.version(), feedback.error());
  }

  /** Whether the label is known. */
  boolean isLabelled() {
    return !Double.isNaN(error);
  }

  /** Whether it tells how two versions do on the same query. */
  boolean isPaired() {
    return !Double.isNaN(newestError);
  }

  @Override
  public int compareTo(QueryFeedback other) {
    return ORDER.compare(this, other);
  }
}
