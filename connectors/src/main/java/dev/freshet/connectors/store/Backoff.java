package dev.freshet.connectors.store;

import java.util.concurrent.ThreadLocalRandom;

/** How long to wait before an attempt: exponential with a cap, half of it random. */
final class Backoff {

  private static final long FIRST_MS = 20;
  private static final long LONGEST_MS = 2_000;

  /** The largest doubling that matters: 20 ms shifted by it is past the longest wait. */
  private static final int DOUBLINGS_MAX = 7;

  private Backoff() {}

  /**
   * Wait before trying again, milliseconds.
   *
   * @param failures attempts that failed in a row, at least 1
   */
  static long delayMs(int failures) {
    long fullMs = Math.min(LONGEST_MS, FIRST_MS << Math.min(failures - 1, DOUBLINGS_MAX));
    return fullMs / 2 + ThreadLocalRandom.current().nextLong(fullMs / 2 + 1);
  }
}
