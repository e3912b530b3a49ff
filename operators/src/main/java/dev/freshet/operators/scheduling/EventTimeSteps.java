package dev.freshet.operators.scheduling;

import java.util.List;
import java.util.function.BooleanSupplier;

/**
 * The steps of event time at whose ends an event-time budget is spent. Steps begin with the first
 * input and are decided one by one as the watermark passes their ends, so the choices do not depend
 * on how finely the watermark moves.
 *
 * <p>Timeline with steps of 10: an input at 3; watermark 25 decides the steps that end at 10 and
 * 20; watermark 30 decides the step that ends at 30.
 */
final class EventTimeSteps {

  /** Decides one step. */
  @FunctionalInterface
  interface Decision {
    /**
     * Applies what arrived for the step and spends its budget.
     *
     * @param stepEnd end of the step, epoch milliseconds
     */
    void decide(long stepEnd) throws Exception;
  }

  private final EventTimeStepBudget budget;
  private long lastDecided = StepProgress.NONE;
  private long firstInput = Long.MAX_VALUE;
  private long lastInput = StepProgress.NONE;

  EventTimeSteps(EventTimeStepBudget budget) {
    this.budget = budget;
  }

  /** End of the step decided last, or being decided; {@link KeyRecord#NO_TIME} before the first. */
  long lastDecided() {
    return lastDecided;
  }

  /** End of the step that an input belongs to. */
  long stepEnd(long timestampMs) {
    return budget.stepEnd(timestampMs);
  }

  /** Whether the step with this end was decided, so that its input counts at once. */
  boolean isDecided(long stepEnd) {
    return stepEnd <= lastDecided;
  }

  /** Notes that the step with this end has input, or another reason to be decided. */
  void expect(long stepEnd) {
    firstInput = Math.min(firstInput, stepEnd);
    lastInput = Math.max(lastInput, stepEnd);
  }

  /**
   * Decides all steps that the watermark has passed.
   *
   * @param idle whether nothing is pending, so that steps without input can be skipped
   */
  void advance(long watermark, BooleanSupplier idle, Decision decision)
      throws Exception {
    if (lastInput == StepProgress.NONE) {
      return;
    }
    long step = budget.stepMs();
    long stepEnd = lastDecided == StepProgress.NONE ? firstInput : lastDecided + step;
    while (stepEnd <= watermark) {
      boolean beyondInput = stepEnd > lastInput;
      if (beyondInput && watermark == Long.MAX_VALUE) {
        // A bounded input has ended: its last step was decided, time does not go on.
        return;
      }
      if (beyondInput && idle.getAsBoolean()) {
        long last = Math.floorDiv(watermark, step) * step;
        budget.skip((last - lastDecided) / step);
        lastDecided = last;
        return;
      }
      lastDecided = stepEnd;
      decision.decide(stepEnd);
      stepEnd += step;
    }
  }

  StepProgress snapshot(int subtask, int parallelism) {
    return new StepProgress(
        subtask, parallelism, lastDecided, firstInput, lastInput, budget.credit());
  }

  void restore(List<StepProgress> all, int subtask, int parallelism) {
    StepProgress progress = StepProgress.restore(all, subtask, parallelism);
    lastDecided = progress.lastDecided();
    firstInput = progress.firstInput();
    lastInput = progress.lastInput();
    budget.restoreCredit(progress.credit());
  }
}
