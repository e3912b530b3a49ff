package dev.freshet.operators.scheduling;

/**
 * Recomputes the key whose computations have taken in the fewest events (RALF §2.5.3): a user of
 * whom little was known gains most from more.
 */
public record MinimumPastPolicy() implements SchedulingPolicy {

  /** Name of the policy. */
  public static final String NAME = "minimum-past";

  @Override
  public String name() {
    return NAME;
  }

  @Override
  public double priority(KeyRecord record) {
    return -(double) record.incorporated();
  }
}
