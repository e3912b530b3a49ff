package dev.freshet.operators.dissemination;

import dev.freshet.connectors.chunk.KeyChange;

/**
 * Which changes of a table may go out of turn while a link is behind: those among the share of the
 * recent ones of all tables with the highest priority (Ekko §5.2.1, {@code p = (significance +
 * freshness) · model}).
 *
 * <ul>
 *   <li>Significance is the regret that a change removes over the mean of recent changes of its
 *       table, so that tables with errors of other magnitudes compare.
 *   <li>Freshness favours the first value of a key, without which nothing can be served for it. It
 *       is normalised as significance is, to a mean of 1: one over the share of recent changes that
 *       are first ones, so that each counts for the more, the fewer they are. Changes of keys that
 *       are known have none.
 *   <li>Model is the table's weight.
 * </ul>
 *
 * <p>Example: one change in 50 is a key's first. It has the priority of one that removes 50 times
 * the usual regret.
 */
final class Priorities {

  private static final double MEAN_WEIGHT = 1e-3;

  /** Fewer first values than this share count no more: one is not worth all else. */
  private static final double FIRST_SHARE_MIN = 1e-3;

  private final PriorityQuantile quantile;
  private final double modelWeight;
  private double meanRegret;
  private double firstShare;
  private long observed;

  /**
   * @param quantile of all tables that share links
   * @param modelWeight the table's weight beside others
   */
  Priorities(PriorityQuantile quantile, double modelWeight) {
    this.quantile = quantile;
    this.modelWeight = modelWeight;
  }

  /** A change came in; once for each, however many links it goes to. */
  void observe(KeyChange change) {
    // The first ones count equally, so that no mean begins near 0.
    double weight = Math.max(MEAN_WEIGHT, 1.0 / ++observed);
    meanRegret += weight * (change.regretRemoved() - meanRegret);
    firstShare += weight * ((change.isFirst() ? 1 : 0) - firstShare);
    quantile.observe(priority(change));
  }

  /** Priority of a change. */
  double priority(KeyChange change) {
    double significance = meanRegret > 0 ? Math.max(0, change.regretRemoved()) / meanRegret : 0;
    double freshness = change.isFirst() ? 1 / Math.max(FIRST_SHARE_MIN, firstShare) : 0;
    return (significance + freshness) * modelWeight;
  }

  /** Whether a priority is among the share of the recent changes' with the highest ones. */
  boolean isSignificant(double priority) {
    return quantile.isBelow(priority);
  }

  /** Whether a change is among the share of the recent ones with the highest priority. */
  boolean isSignificant(KeyChange change) {
    return isSignificant(priority(change));
  }
}
