package dev.freshet.operators.dissemination;

import com.datadoghq.sketch.ddsketch.DDSketch;
import com.datadoghq.sketch.ddsketch.DDSketches;
import dev.freshet.schemas.Lags;

/** Times between two reports, milliseconds. */
final class LagSketch {

  /** Relative error of a quantile. */
  private static final double ACCURACY = 0.01;

  /** Far more than the bins of 1 ms to a day at this accuracy. */
  private static final int BINS_MAX = 2_048;

  private DDSketch sketch = newSketch();
  private double max;

  private static DDSketch newSketch() {
    return DDSketches.logarithmicCollapsingLowestDense(ACCURACY, BINS_MAX);
  }

  /** One more. Less than none is the clocks' error. */
  void add(double milliseconds) {
    double lag = Math.max(0, milliseconds);
    sketch.accept(lag);
    max = Math.max(max, lag);
  }

  /** What was added since the last call; null if that is nothing. */
  Lags take() {
    if (sketch.isEmpty()) {
      return null;
    }
    Lags lags =
        new Lags(
            (long) sketch.getCount(),
            sketch.getValueAtQuantile(0.5),
            sketch.getValueAtQuantile(0.99),
            max);
    sketch = newSketch();
    max = 0;
    return lags;
  }
}
