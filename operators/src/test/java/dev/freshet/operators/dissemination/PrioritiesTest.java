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
  void aKeysFirstValueGoesFirstWhereItIsRare() {
    Priorities priorities = new Priorities(new PriorityQuantile(SHARE), 1);
    SplittableRandom random = new SplittableRandom(7);
    int passedOver = 0;
    int others = 0;
    for (int i = 0; i < 20_000; i++) {
      boolean isFirst = i % 50 == 0;
      KeyChange change = change(isFirst ? 0 : -Math.log(1 - random.nextDouble()), isFirst);
      priorities.observe(change);
      boolean isSignificant = priorities.isSignificant(change);
      passedOver += isFirst && !isSignificant ? 1 : 0;
      others += !isFirst && isSignificant ? 1 : 0;
    }
    assertThat(passedOver).as("while little is known").isLessThan(20);
    assertThat(others / 20_000.0).as("the rest of the share").isCloseTo(0.03, within(0.01));
  }

  @Test
  void regretDecidesWhereAllKeysAreNew() {
    Priorities priorities = new Priorities(new PriorityQuantile(SHARE), 1);
    for (int i = 0; i < 20_000; i++) {
      priorities.observe(change(i % 100, true));
    }
    assertThat(priorities.isSignificant(change(99, true))).isTrue();
    assertThat(priorities.isSignificant(change(50, true))).isFalse();
  }

  @Test
  void nothingIsSignificantWhereAllIsAlike() {
    Priorities priorities = new Priorities(new PriorityQuantile(SHARE), 1);
    IntStream.range(0, 5_000).forEach(i -> priorities.observe(change(0, false)));
    assertThat(priorities.isSignificant(change(0, false))).isFalse();
  }

  /** Share of changes with exponentially distributed regret that are significant as they come. */
  private static double significantOf(Priorities priorities, int changes, double scale) {
    SplittableRandom random = new SplittableRandom(7);
    int significant = 0;
    for (int i = 0; i < changes; i++) {
      double regret = -Math.log(1 - random.nextDouble()) * scale;
      KeyChange change = change(regret, false);
      priorities.observe(change);
      significant += priorities.isSignificant(change) ? 1 : 0;
    }
    return significant / (double) changes;
  }

  private static KeyChange change(double regret, boolean isFirst) {
    return new KeyChange("k", new Version(1, 1), 0, 0, 0, isFirst, (float) regret, new byte[0]);
  }
}
