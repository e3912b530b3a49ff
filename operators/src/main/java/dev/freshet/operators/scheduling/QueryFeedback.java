package dev.freshet.operators.scheduling;

import dev.freshet.connectors.record.Feedback;
import dev.freshet.connectors.record.Version;
import java.util.Comparator;

/**
 * What feedback on one query tells the key's record.
 *
 * @param version newest version that the query saw; {@link Version#NONE} when there was no value
 * @param error error of the prediction that was served; NaN without a label
 */
record QueryFeedback(Version version, double error) implements Comparable<QueryFeedback> {

  private static final Comparator<QueryFeedback> ORDER =
      Comparator.comparing(QueryFeedback::version).thenComparingDouble(QueryFeedback::error);

  static QueryFeedback of(Feedback feedback) {
    return new QueryFeedback(feedback.version(), feedback.error());
  }

  /** Whether the label is known. */
  boolean isLabelled() {
    return !Double.isNaN(error);
  }

  @Override
  public int compareTo(QueryFeedback other) {
    return ORDER.compare(this, other);
  }
}
