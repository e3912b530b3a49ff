package dev.freshet.operators.scheduling;

/**
 * Recomputes the least recently chosen key that has pending data (RALF §2.5.3), to the millisecond.
 */
public record RoundRobinPolicy() implements SchedulingPolicy {

  /** Name of the policy. */
  public static final String NAME = "round-robin";

  @Override
  public String name() {
    return NAME;
  }

  @Override
  public double priority(KeyRecord record) {
    return -(double) record.lastChosenMs();
  }
}
