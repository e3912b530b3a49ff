package dev.freshet.operators.dissemination;

import dev.freshet.connectors.chunk.KeyChange;

/**
 * Which changes of a table may go out of turn while a link is behind: those among the most
 * significant share of the recent ones of all tables (Ekko §5.2.1, {@code p = significance ·
 * model}).
 *
 * <p>Significance is the regret that a change removes over the mean of recent changes of its table,
 * so that tables with errors of other magnitudes compare; model is the table's weight. Ekko adds
 * the freshness of new keys; here their first value removes regret as any other does.
 */
final class Priorities {

  private static final double MEAN_WEIGHT = 1e-3;

  private final PriorityQuantile quantile;
  private final double modelWeight;
  private double meanRegret;
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
  void observe(double regret) {
    // The first ones count equally, so that the mean does not begin near 0.
    meanRegret += Math.max(MEAN_WEIGHT, 1.0 / ++observed) * (regret - meanRegret);
    quantile.observe(priority(regret));
  }

  /** Priority of a change that removes so much regret. */
  double priority(double regret) {
    double significance = meanRegret > 0 ? Math.max(0, regret) / meanRegret : 0;
    return significance * modelWeight;
  }

  /** Whether a change is among the most significant share of the recent ones. */
  boolean isSignificant(KeyChange change) {
    return quantile.isBelow(priority(change.regretRemoved()));
  }
}
