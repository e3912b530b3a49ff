package dev.freshet.operators.scheduling;

/**
 * Updates per step of event time (RALF §2.3.3, eq. 2.8: |U_t| &lt;= C). The same input makes the
 * same choices, however fast it is replayed.
 *
 * <p>A fraction carries over: 1.29 updates a step are 1, 1, 1, 2, … updates. What was not used, for
 * want of pending keys, does not pile up beyond one update.
 */
final class EventTimeStepBudget implements ComputeBudget {

  private static final long serialVersionUID = 1L;

  /** Guards the carried fraction against rounding, so that 10 x 0.1 is one update. */
  private static final double ROUNDING = 1e-9;

  private final double perStep;
  private final long stepMs;
  private double credit;
  private double granted;
  private double spent;

  /**
   * A budget of this many updates a step.
   *
   * @param perStep updates of this subtask in one step, above 0
   * @param stepMs length of a step, milliseconds of event time
   * @param initialUpdates updates granted once, at the start
   */
  EventTimeStepBudget(double perStep, long stepMs, double initialUpdates) {
    if (!(perStep > 0) || stepMs <= 0 || !(initialUpdates >= 0)) {
      throw new IllegalArgumentException(
          "event-time-step budget needs updates > 0, a step > 0 ms and initial updates >= 0, not "
              + perStep
              + ", "
              + stepMs
              + ", "
              + initialUpdates);
    }
    this.perStep = perStep;
    this.stepMs = stepMs;
    this.credit = initialUpdates;
    this.granted = initialUpdates;
  }

  /** Length of a step, milliseconds of event time. */
  long stepMs() {
    return stepMs;
  }

  /** End of the step that holds this time: the smallest multiple of the step at or after it. */
  long stepEnd(long timestampMs) {
    return -Math.floorDiv(-timestampMs, stepMs) * stepMs;
  }

  /** Begins a step and returns how many keys may be chosen in it. */
  int beginStep() {
    granted += perStep;
    return updatesOfStep();
  }

  private int updatesOfStep() {
    credit = Math.max(credit, Math.min(credit + perStep, perStep + 1));
    return (int) Math.min(Integer.MAX_VALUE, credit + ROUNDING);
  }

  /** Passes over steps in which nothing is pending, as if each had begun and chosen nothing. */
  void skip(long steps) {
    granted += steps * perStep;
    for (long i = 0; i < steps && credit < perStep + 1; i++) {
      updatesOfStep();
    }
  }

  /** Tells how many keys were chosen. */
  void spend(int keys) {
    credit -= keys;
    spent += keys;
  }

  @Override
  public double granted(long nowNanos) {
    return granted;
  }

  @Override
  public double spent() {
    return spent;
  }

  /** What is left, in updates; checkpointed, so that a restored run makes the same choices. */
  double credit() {
    return credit;
  }

  void restoreCredit(double restored) {
    credit = restored;
  }
}
