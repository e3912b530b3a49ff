package dev.freshet.operators.scheduling;

import java.util.EnumSet;
import java.util.Set;

/**
 * Recomputes the key that has the largest regret for each second that computing it takes: with a
 * budget of time, two cheap keys of regret 3 are worth more than one of regret 5 that takes as long
 * as both. Costs are measured, so that choices depend on the machine, in event-time steps too.
 *
 * @param settings default regret, cap, and the regret of a missing value; the cap is of regret per
 *     second
 */
public record RegretPerCostPolicy(RegretSettings settings) implements RegretPolicy {

  /** Name of the policy. */
  public static final String NAME = "regret-per-cost";

  private static final double NANOS_PER_SECOND = 1e9;

  /** Below this, measuring takes as long as computing. Also the cost that is not known yet. */
  private static final double COST_NANOS_MIN = 1_000;

  @Override
  public String name() {
    return NAME;
  }

  @Override
  public Set<Need> needs() {
    return EnumSet.of(Need.LABELS, Need.COSTS);
  }

  @Override
  public double score(KeyRecord record) {
    double cost = Double.isNaN(record.costNanos()) ? COST_NANOS_MIN : record.costNanos();
    return settings.regret(record) / Math.max(COST_NANOS_MIN, cost) * NANOS_PER_SECOND;
  }
}
