package dev.freshet.operators.scheduling;

/**
 * Processes every event in order of event time, each with the window as of that event: what a
 * stream processor does without scheduling (RALF §2.2.2). Under a budget below the event rate its
 * backlog grows without end, and so does its staleness.
 */
public record FifoPolicy() implements SchedulingPolicy {

  /** Name of the policy. */
  public static final String NAME = "fifo";

  @Override
  public String name() {
    return NAME;
  }

  @Override
  public double priority(KeyRecord record) {
    return -(double) record.oldestPending();
  }

  @Override
  public Consumption consumption() {
    return Consumption.OLDEST_PENDING;
  }
}
