package dev.freshet.operators.scheduling;

import java.io.Serializable;

/** A table's compute budget, before it is divided among its subtasks. */
public sealed interface BudgetSettings extends Serializable {

  /** The part of one of so many subtasks, each of which schedules alone. */
  ComputeBudget forSubtask(int parallelism);

  /**
   * A share of each subtask's time.
   *
   * @param share above 0, at most 1
   */
  record TimeShare(double share) implements BudgetSettings {
    @Override
    public ComputeBudget forSubtask(int parallelism) {
      return new TimeShareBudget(share);
    }
  }

  /**
   * A rate over all subtasks.
   *
   * @param updatesPerSecond above 0
   * @param burst most updates at once after a time without any
   */
  record Rate(double updatesPerSecond, double burst) implements BudgetSettings {

    /** A rate with a burst of one second's worth. */
    public Rate(double updatesPerSecond) {
      this(updatesPerSecond, updatesPerSecond);
    }

    @Override
    public ComputeBudget forSubtask(int parallelism) {
      return new RateBudget(updatesPerSecond / parallelism, burst / parallelism);
    }
  }

  /**
   * Updates per step of event time, over all subtasks.
   *
   * @param updatesPerStep above 0
   * @param stepMs length of a step, milliseconds of event time
   * @param initialUpdates updates granted once at the start, for instance one for each key
   */
  record EventTimeStep(double updatesPerStep, long stepMs, double initialUpdates)
      implements BudgetSettings {
    @Override
    public ComputeBudget forSubtask(int parallelism) {
      return new EventTimeStepBudget(
          updatesPerStep / parallelism, stepMs, initialUpdates / parallelism);
    }
  }
}
