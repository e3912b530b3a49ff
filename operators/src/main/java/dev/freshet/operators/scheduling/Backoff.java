package dev.freshet.operators.scheduling;

/** How long a key whose computation failed is left alone: doubling, up to a limit. */
record Backoff(long firstMs, long maxMs) {

  private static final long FIRST_ON_WALL_CLOCK_MS = 1_000;
  private static final long MAX_ON_WALL_CLOCK_MS = 300_000;
  private static final int MAX_STEPS = 64;

  /** Keeps the shift from overflowing; the limit is reached long before. */
  private static final int MAX_DOUBLINGS = 16;

  static Backoff onWallClock() {
    return new Backoff(FIRST_ON_WALL_CLOCK_MS, MAX_ON_WALL_CLOCK_MS);
  }

  static Backoff inSteps(long stepMs) {
    return new Backoff(stepMs, MAX_STEPS * stepMs);
  }

  /**
   * The delay after another failure, milliseconds.
   *
   * @param earlierFailures failures in a row before this one
   */
  long delayMs(int earlierFailures) {
    return Math.min(maxMs, firstMs << Math.min(earlierFailures, MAX_DOUBLINGS));
  }
}
