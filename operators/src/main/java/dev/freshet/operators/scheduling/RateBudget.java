package dev.freshet.operators.scheduling;

/**
 * Updates per second, as a third party's rate limit: a token bucket. It starts with one token, so
 * that a restart is no reason for a burst.
 */
final class RateBudget implements ComputeBudget.WallClock {

  private static final long serialVersionUID = 1L;
  private static final double NANOS_PER_SECOND = 1e9;

  private final double perSecond;
  private final double capacity;
  private double tokens = 1;
  private long refilledNanos = Long.MIN_VALUE;
  private long startNanos = Long.MIN_VALUE;
  private long updates;

  /** A bucket that holds one second's worth, so that no second sees more than twice the rate. */
  RateBudget(double perSecond) {
    this(perSecond, perSecond);
  }

  /**
   * A budget of this rate.
   *
   * @param perSecond updates per second of this subtask, above 0
   * @param burst updates that it saves up while there is nothing to do; at least 1 are
   */
  RateBudget(double perSecond, double burst) {
    if (!(perSecond > 0)) {
      throw new IllegalArgumentException("rate " + perSecond + " per second is not above 0");
    }
    this.perSecond = perSecond;
    this.capacity = Math.max(1, burst);
  }

  @Override
  public int permits(long nowNanos) {
    refill(nowNanos);
    return (int) Math.min(Integer.MAX_VALUE, tokens);
  }

  @Override
  public long nextPermitNanos(long nowNanos) {
    refill(nowNanos);
    double missing = Math.max(0, 1 - tokens);
    return nowNanos + (long) Math.ceil(missing / perSecond * NANOS_PER_SECOND);
  }

  @Override
  public void spend(int keys, long computeNanos, long nowNanos) {
    tokens -= keys;
    updates += keys;
  }

  @Override
  public double granted(long nowNanos) {
    return startNanos == Long.MIN_VALUE
        ? 0
        : 1 + perSecond * (nowNanos - startNanos) / NANOS_PER_SECOND;
  }

  @Override
  public double spent() {
    return updates;
  }

  private void refill(long nowNanos) {
    if (refilledNanos != Long.MIN_VALUE) {
      double elapsed = (nowNanos - refilledNanos) / NANOS_PER_SECOND;
      tokens = Math.min(capacity, tokens + elapsed * perSecond);
    } else {
      startNanos = nowNanos;
    }
    refilledNanos = nowNanos;
  }
}
