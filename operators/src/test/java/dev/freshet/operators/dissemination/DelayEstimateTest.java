package dev.freshet.operators.dissemination;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

/** Predictions are of the slowest recent deliveries, and forget them. */
final class DelayEstimateTest {

  private static final long SECOND_MS = 1_000;
  private static final double UNKNOWN_MS = 50;

  private final DelayEstimate delay = new DelayEstimate(UNKNOWN_MS);

  private void measure(double ms, long fromS, long untilS) {
    for (long second = fromS; second < untilS; second++) {
      delay.measured(ms, second * SECOND_MS);
    }
  }

  @Test
  void beforeAnythingIsMeasuredItIsAGuess() {
    assertThat(delay.predictedMs()).isEqualTo(UNKNOWN_MS);
  }

  @Test
  void oneSlowDeliveryCountsForAWhile() {
    measure(20, 0, 30);
    assertThat(delay.predictedMs()).isBetween(20.0, 25.0);
    delay.measured(400, 30 * SECOND_MS);
    measure(20, 31, 39);
    assertThat(delay.predictedMs()).isGreaterThanOrEqualTo(400);
    measure(20, 39, 80);
    assertThat(delay.predictedMs()).isBetween(20.0, 40.0);
  }
}
