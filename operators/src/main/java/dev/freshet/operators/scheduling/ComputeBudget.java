package dev.freshet.operators.scheduling;

import java.io.Serializable;

/**
 * A subtask's budget of computations. Budgets on the wall clock ({@link TimeShareBudget}, {@link
 * RateBudget}) say when the next choice may be made; {@link EventTimeStepBudget} is asked at each
 * step of event time instead.
 */
public sealed interface ComputeBudget extends Serializable
    permits ComputeBudget.WallClock, EventTimeStepBudget {

  /**
   * What it has granted since the start, used or not: seconds of computing for {@link
   * TimeShareBudget}, updates for the others. May be read by another thread.
   */
  double granted(long nowNanos);

  /** What of that was spent. */
  double spent();

  /** A budget that is spent along the wall clock. */
  sealed interface WallClock extends ComputeBudget permits TimeShareBudget, RateBudget {

    /** Keys that may be chosen at this time; 0 when it is too early. */
    int permits(long nowNanos);

    /** The earliest time at which {@link #permits} is above 0, on the same clock. */
    long nextPermitNanos(long nowNanos);

    /** Tells the budget of a batch that ended now. */
    void spend(int keys, long computeNanos, long nowNanos);
  }
}
