package dev.freshet.operators.scheduling;

import org.apache.flink.streaming.runtime.tasks.ProcessingTimeService;

/**
 * The loop of a wall-clock budget: compute a batch, take in what has arrived for a short, bounded
 * slice, choose again. It runs on processing-time timers, between which the task reads its input at
 * full speed; mail in the mailbox would slow the input down to a record at a time.
 */
final class ComputeLoop {

  /** Input is taken in for at most this share of the last batch's time, while it keeps coming. */
  private static final double SLICE_SHARE = 0.1;

  private static final long MIN_SLICE_NANOS = 2_000_000;
  private static final long MAX_SLICE_NANOS = 50_000_000;
  private static final long NANOS_PER_MS = 1_000_000;

  /**
   * A batch that was computed.
   *
   * @param keys keys in it that were computed
   * @param computeNanos time of the feature function, nanoseconds; 0 when not known
   * @param exhausted whether no key is left to choose
   */
  record Batch(int keys, long computeNanos, boolean exhausted) {}

  /** Computes a batch. */
  @FunctionalInterface
  interface Step {
    Batch compute(int maxKeys) throws Exception;
  }

  private final ComputeBudget.WallClock budget;
  private final ProcessingTimeService time;
  private final Step step;
  private boolean armed;
  private boolean inputSinceTick;
  private long sliceEndNanos = Long.MIN_VALUE;
  private long pausedUntilNanos = Long.MIN_VALUE;

  ComputeLoop(ComputeBudget.WallClock budget, ProcessingTimeService time, Step step) {
    this.budget = budget;
    this.time = time;
    this.step = step;
  }

  /** Tells that a key may be eligible. */
  void wake() {
    if (!armed) {
      armed = true;
      arm(0);
    }
  }

  /** Computes nothing for so long; of several pauses the one that ends last counts. */
  void pause(long durationNanos) {
    pausedUntilNanos = Math.max(pausedUntilNanos, nanos() + durationNanos);
  }

  /** Tells that input was processed. */
  void inputTaken() {
    inputSinceTick = true;
  }

  /** Stays armed while it computes: keys that become eligible then must not arm a second timer. */
  private void tick(long ignored) throws Exception {
    long now = nanos();
    boolean inputIsComing = inputSinceTick;
    inputSinceTick = false;
    if (inputIsComing && now < sliceEndNanos) {
      arm(0);
      return;
    }
    if (now < pausedUntilNanos) {
      arm(pausedUntilNanos - now);
      return;
    }
    int permits = budget.permits(now);
    if (permits == 0) {
      arm(budget.nextPermitNanos(now) - now);
      return;
    }
    run(permits, now);
  }

  private void run(int permits, long startNanos) throws Exception {
    Batch batch = step.compute(permits);
    long end = nanos();
    long elapsed = end - startNanos;
    // Waiting for the store is not computing; where the function's own time is known, it counts.
    budget.spend(batch.keys(), batch.computeNanos() > 0 ? batch.computeNanos() : elapsed, end);
    long slice = (long) (elapsed * SLICE_SHARE);
    sliceEndNanos = end + Math.max(MIN_SLICE_NANOS, Math.min(MAX_SLICE_NANOS, slice));
    if (batch.exhausted()) {
      armed = false;
    } else {
      arm(Math.max(0, Math.max(pausedUntilNanos, budget.nextPermitNanos(end)) - end));
    }
  }

  private long nanos() {
    return time.getClock().relativeTimeNanos();
  }

  private void arm(long delayNanos) {
    long delayMs = (delayNanos + NANOS_PER_MS - 1) / NANOS_PER_MS;
    time.registerTimer(time.getCurrentProcessingTime() + delayMs, this::tick);
  }
}
