package dev.freshet.operators.dissemination;

import com.datadoghq.sketch.ddsketch.DDSketch;
import com.datadoghq.sketch.ddsketch.DDSketches;

/**
 * The priority above which only the most significant share of the recent changes of all tables lies
 * (Ekko §5.2.2), by a quantile sketch.
 */
final class PriorityQuantile {

  /** Relative error of the quantile. */
  private static final double ACCURACY = 0.02;

  private static final int BINS_MAX = 512;

  /** Changes after which older ones begin to be forgotten. */
  private static final int WINDOW = 20_000;

  /** Changes between two looks at the sketch, which costs more than adding to it. */
  private static final int REFRESH = 500;

  private final double share;
  private DDSketch recent = newSketch();
  private DDSketch before = newSketch();
  private double threshold = Double.POSITIVE_INFINITY;
  private int sinceRefresh;

  /**
   * @param share of the changes that lies above, 0 to 1; 0 for none
   */
  PriorityQuantile(double share) {
    this.share = share;
  }

  private static DDSketch newSketch() {
    return DDSketches.logarithmicCollapsingLowestDense(ACCURACY, BINS_MAX);
  }

  /** A change of this priority came in. */
  void observe(double priority) {
    if (share <= 0) {
      return;
    }
    recent.accept(priority);
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

  /** Whether a priority is above; none is before enough changes were seen. */
  boolean isBelow(double priority) {
    return priority > threshold;
  }
}
