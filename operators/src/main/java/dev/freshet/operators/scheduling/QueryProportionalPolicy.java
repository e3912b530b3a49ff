package dev.freshet.operators.scheduling;

import java.util.EnumSet;
import java.util.Set;

/**
 * Recomputes the key that was queried most since its last update, whatever its errors (RALF
 * §2.5.3).
 *
 * @param settings the regret of a missing value, here in queries
 */
public record QueryProportionalPolicy(RegretSettings settings) implements SchedulingPolicy {

  /** Name of the policy. */
  public static final String NAME = "query-proportional";

  @Override
  public String name() {
    return NAME;
  }

  @Override
  public Set<Need> needs() {
    return EnumSet.of(Need.QUERIES);
  }

  @Override
  public double priority(KeyRecord record) {
    return settings.comesFirst(record)
        ? Double.POSITIVE_INFINITY
        : record.queries() + settings.ofMissing(record);
  }
}
