package dev.freshet.operators.scheduling;

/** Recomputes the key with the most events that its value does not contain (RALF §2.5.3). */
public record MaxPendingPolicy() implements SchedulingPolicy {

  /** Name of the policy. */
  public static final String NAME = "max-pending";

  @Override
  public String name() {
    return NAME;
  }

  @Override
  public double priority(KeyRecord record) {
    return record.pending();
  }
}
