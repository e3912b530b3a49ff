package dev.freshet.operators.dissemination;

import com.datadoghq.sketch.ddsketch.DDSketch;
import com.datadoghq.sketch.ddsketch.DDSketches;
import dev.freshet.connectors.chunk.KeyChange;

/**
 * Which changes of a table may go out of turn while a link is behind: the most significant share of
 * the recent ones (Ekko §5.2.1, {@code p = significance · model}, and §5.2.2, top k by a quantile
 * sketch).
 *
 * <p>Significance is the regret that a change removes over the mean of recent changes of its table,
 * so that tables with errors of other magnitudes compare; model is the table's weight. Ekko adds
 * the freshness of new keys; here their first value removes regret as any other does.
 */
final class Priorities {

  /** Relative error of the quantile. */
  private static final double ACCURACY = 0.02;

  private static final int BINS_MAX = 512;

  /** Changes after which older ones begin to be forgotten. */
  private static final int WINDOW = 20_000;

  /** Changes between two looks at the sketch, which costs more than adding to it. */
  private static final int REFRESH = 500;

  private static final double MEAN_WEIGHT = 1e-3;

  private final double share;
  private final double modelWeight;
  private DDSketch recent = newSketch();
  private DDSketch before = newSketch();
  private double meanRegret;
  private double threshold = Double.POSITIVE_INFINITY;
  private int sinceRefresh;

  /**
   * @param share of the changes that are significant, 0 to 1; 0 for none
   * @param modelWeight the table's weight beside others
   */
  Priorities(double share, double modelWeight) {
    this.share = share;
    this.modelWeight = modelWeight;
  }

  private static DDSketch newSketch() {
    return DDSketches.logarithmicCollapsingLowestDense(ACCURACY, BINS_MAX);
  }

  /** A change came in; once for each, however many links it goes to. */
  void observe(double regret) {
    meanRegret += MEAN_WEIGHT * (regret - meanRegret);
    if (share <= 0) {
      return;
    }
    recent.accept(priority(regret));
    if (++sinceRefresh >= REFRESH) {
      refresh();
    }
  }

  private void refresh() {
    sinceRefresh = 0;
    DDSketch both = before.copy();
    both.mergeWith(recent);
    threshold = both.getValueAtQuantile(1 - share);
    if (recent.getCount() >= WINDOW) {
      before = recent;
      recent = newSketch();
    }
  }

  /** Priority of a change that removes so much regret. */
  double priority(double regret) {
    double significance = meanRegret > 0 ? Math.max(0, regret) / meanRegret : 0;
    return significance * modelWeight;
  }

  /** Whether a change is among the most significant share of the recent ones. */
  boolean isSignificant(KeyChange change) {
    return priority(change.regretRemoved()) > threshold;
  }
}
