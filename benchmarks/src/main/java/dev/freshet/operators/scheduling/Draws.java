package dev.freshet.operators.scheduling;

import java.util.Arrays;
import java.util.SplittableRandom;

/** Random sequences of keys. */
final class Draws {

  private Draws() {}

  /** Every key is as likely as any other. */
  static int[] uniform(SplittableRandom random, int keys, int count) {
    return random.ints(count, 0, keys).toArray();
  }

  /** By Zipf's law with exponent 1: the second key is half as likely as the first, and so on. */
  static int[] skewed(SplittableRandom random, int keys, int count) {
    int[] byRank = shuffled(random, keys);
    double[] cumulated = new double[keys];
    double sum = 0;
    for (int rank = 0; rank < keys; rank++) {
      sum += 1.0 / (rank + 1);
      cumulated[rank] = sum;
    }
    int[] drawn = new int[count];
    for (int i = 0; i < count; i++) {
      int rank = Arrays.binarySearch(cumulated, random.nextDouble() * sum);
      drawn[i] = byRank[rank < 0 ? ~rank : rank];
    }
    return drawn;
  }

  /** Likely keys must not be neighbours in memory. */
  private static int[] shuffled(SplittableRandom random, int keys) {
    int[] order = new int[keys];
    for (int i = 0; i < keys; i++) {
      int other = random.nextInt(i + 1);
      order[i] = order[other];
      order[other] = i;
    }
    return order;
  }
}
