package dev.freshet.operators.scheduling;

/**
 * Recomputes the key whose errors have grown most since its last update (RALF §2.3.3, eq. 2.11 as
 * printed): each error counts for what it is above the mean error of the first round of feedback
 * after the update, which stands for the error of the model itself ({@link
 * KeyRecord#baselineError}). The sum may be negative. There is no default regret: a key without
 * feedback scores 0.
 *
 * <p>For comparison: a key that was updated in a bad moment has a high baseline, scores below zero
 * from then on, and starves.
 *
 * @param settings cap, and the regret of a missing value
 */
public record RegretOverBaselinePolicy(RegretSettings settings) implements RegretPolicy {

  /** Name of the policy. */
  public static final String NAME = "regret-over-baseline";

  @Override
  public String name() {
    return NAME;
  }

  @Override
  public double score(KeyRecord record) {
    if (!record.hasValue()) {
      return record.regret() + settings.ofMissing(record);
    }
    double baseline = record.baselineError();
    if (Double.isNaN(baseline)) {
      return 0;
    }
    // Of the first round itself nothing is left, exactly and not only up to rounding.
    double sinceFirst = record.regret() - record.baselineRegret;
    long errorsSinceFirst = record.errors() - record.baselineErrors;
    return sinceFirst - errorsSinceFirst * baseline;
  }
}
