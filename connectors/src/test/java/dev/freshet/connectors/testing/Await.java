package dev.freshet.connectors.testing;

import java.time.Duration;
import java.util.concurrent.Callable;
import java.util.concurrent.locks.LockSupport;

/** Waits for a condition, with a deadline. */
public final class Await {

  /** Long enough for a loaded machine; a test that passes never waits for it. */
  public static final Duration DEADLINE = Duration.ofSeconds(30);

  private static final long POLL_NANOS = 1_000_000;

  private Await() {}

  /** Polls until the condition holds. */
  public static void until(String what, Callable<Boolean> condition) throws Exception {
    long deadline = System.nanoTime() + DEADLINE.toNanos();
    while (!condition.call()) {
      if (System.nanoTime() > deadline) {
        throw new AssertionError("waited " + DEADLINE.toSeconds() + " s in vain until " + what);
      }
      LockSupport.parkNanos(POLL_NANOS);
    }
  }
}
