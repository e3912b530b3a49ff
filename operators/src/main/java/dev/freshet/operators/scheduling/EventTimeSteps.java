package dev.freshet.operators.scheduling;

import java.util.List;
import java.util.NavigableSet;
import java.util.TreeSet;
import java.util.function.BooleanSupplier;

/**
 * The steps of event time at whose ends an event-time budget is spent. Steps begin with the first
 * input and are decided one by one as the watermark passes their ends, so the choices do not depend
 * on how finely the watermark moves. While nothing is pending, steps without input are passed over
 * together: one event with a timestamp of decades ago costs no walk through the decades.
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

  /** Ends of undecided steps that have input; each has an event-time timer, so it is derived. */
  private final NavigableSet<Long> expected = new TreeSet<>();

  private long lastDecided = StepProgress.NONE;

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
    expected.add(stepEnd);
  }

  /**
   * Decides all steps that the watermark has passed.
   *
   * @param idle whether nothing is pending, so that steps without input can be skipped
   */
  void advance(long watermark, BooleanSupplier idle, Decision decision) throws Exception {
    while (true) {
      long stepEnd = idle.getAsBoolean() ? skipTo(watermark) : next();
      if (stepEnd > lastToDecide(watermark)) {
        return;
      }
      lastDecided = stepEnd;
      expected.headSet(stepEnd, true).clear();
      decision.decide(stepEnd);
    }
  }

  /** Passes over the steps without input up to the watermark; returns the end of the one after. */
  private long skipTo(long watermark) {
    if (lastDecided != StepProgress.NONE) {
      long withInput = expected.isEmpty() ? Long.MAX_VALUE : expected.first();
      long last = Math.min(withInput - budget.stepMs(), lastToDecide(watermark));
      if (last > lastDecided) {
        budget.skip((last - lastDecided) / budget.stepMs());
        lastDecided = last;
      }
    }
    return next();
  }

  private long next() {
    if (lastDecided == StepProgress.NONE) {
      return expected.isEmpty() ? Long.MAX_VALUE : expected.first();
    }
    return lastDecided + budget.stepMs();
  }

  /** At the end of a bounded input the last step with input is decided, time does not go on. */
  private long lastToDecide(long watermark) {
    if (watermark == Long.MAX_VALUE) {
      return expected.isEmpty() ? lastDecided : expected.last();
    }
    return Math.floorDiv(watermark, budget.stepMs()) * budget.stepMs();
  }

  StepProgress snapshot(int subtask, int parallelism) {
    return new StepProgress(subtask, parallelism, lastDecided, budget.credit());
  }

  /** Continues from a snapshot, if need be with steps of another length. */
  void restore(List<StepProgress> all, int subtask, int parallelism) {
    StepProgress progress = StepProgress.restore(all, subtask, parallelism);
    if (progress.lastDecided() != StepProgress.NONE) {
      lastDecided = stepEnd(progress.lastDecided());
    }
    budget.restoreCredit(progress.credit());
  }
}
