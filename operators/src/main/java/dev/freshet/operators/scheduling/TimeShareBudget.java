package dev.freshet.operators.scheduling;

/**
 * A share of the subtask's time: after a computation of c the next may start c * (1 / share - 1)
 * later.
 */
final class TimeShareBudget implements ComputeBudget.WallClock {

  private static final long serialVersionUID = 1L;
  private static final double NANOS_PER_SECOND = 1e9;

  private final double share;
  private long notBeforeNanos = Long.MIN_VALUE;
  private long startNanos = Long.MIN_VALUE;
  private double spentSeconds;

  /**
   * A budget of this share.
   *
   * @param share above 0, at most 1
   */
  TimeShareBudget(double share) {
    if (!(share > 0 && share <= 1)) {
      throw new IllegalArgumentException("time share " + share + " is not in (0, 1]");
    }
    this.share = share;
  }

  @Override
  public int permits(long nowNanos) {
    if (startNanos == Long.MIN_VALUE) {
      startNanos = nowNanos;
    }
    return nowNanos >= notBeforeNanos ? Integer.MAX_VALUE : 0;
  }

  @Override
  public long nextPermitNanos(long nowNanos) {
    return Math.max(nowNanos, notBeforeNanos);
  }

  @Override
  public void spend(int keys, long computeNanos, long nowNanos) {
    notBeforeNanos = nowNanos + (long) (computeNanos * (1 / share - 1));
    spentSeconds += computeNanos / NANOS_PER_SECOND;
  }

  @Override
  public double granted(long nowNanos) {
    return startNanos == Long.MIN_VALUE ? 0 : share * (nowNanos - startNanos) / NANOS_PER_SECOND;
  }

  @Override
  public double spent() {
    return spentSeconds;
  }
}
