package dev.freshet.operators.dissemination;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.freshet.connectors.chunk.KeyChange;
import dev.freshet.connectors.record.Version;
import java.util.SplittableRandom;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** Goal: the share that may go out of turn is kept, over tables of other magnitudes and weights. */
class PrioritiesTest {

  private static final double SHARE = 0.05;

  @Test
  void theShareIsKept() {
    Priorities priorities = new Priorities(new PriorityQuantile(SHARE), 1);
    assertThat(significantOf(priorities, 30_000, 1)).isCloseTo(SHARE, within(0.02));
  }

  @Test
  void tablesOfOtherMagnitudesCompare() {
    PriorityQuantile shared = new PriorityQuantile(SHARE);
    Priorities small = new Priorities(shared, 1);
    Priorities large = new Priorities(shared, 1);
    double ofSmall = 0;
    double ofLarge = 0;
    for (int round = 0; round < 30; round++) {
      ofSmall += significantOf(small, 1_000, 1e-3) / 30;
      ofLarge += significantOf(large, 1_000, 1e3) / 30;
    }
    assertThat(ofSmall).isCloseTo(ofLarge, within(0.02));
  }

  @Test
  void aHeavierTableGoesFirst() {
    PriorityQuantile shared = new PriorityQuantile(SHARE);
    Priorities light = new Priorities(shared, 1);
    Priorities heavy = new Priorities(shared, 10);
    double ofLight = 0;
    double ofHeavy = 0;
    for (int round = 0; round < 30; round++) {
      ofLight += significantOf(light, 1_000, 1) / 30;
      ofHeavy += significantOf(heavy, 1_000, 1) / 30;
    }
    assertThat(ofHeavy).isGreaterThan(10 * ofLight);
  }

  @Test
  void nothingIsSignificantWhereAllIsAlike() {
    Priorities priorities = new Priorities(new PriorityQuantile(SHARE), 1);
    IntStream.range(0, 5_000).forEach(i -> priorities.observe(0));
    assertThat(priorities.isSignificant(change(0))).isFalse();
  }

  /** Share of changes with exponentially distributed regret that are significant as they come. */
  private static double significantOf(Priorities priorities, int changes, double scale) {
    SplittableRandom random = new SplittableRandom(7);
    int significant = 0;
    for (int i = 0; i < changes; i++) {
      double regret = -Math.log(1 - random.nextDouble()) * scale;
      priorities.observe(regret);
      significant += priorities.isSignificant(change(regret)) ? 1 : 0;
    }
    return significant / (double) changes;
  }

  private static KeyChange change(double regret) {
    return new KeyChange("k", new Version(1, 1), 0, 0, 0, (float) regret, new byte[0]);
  }
}
