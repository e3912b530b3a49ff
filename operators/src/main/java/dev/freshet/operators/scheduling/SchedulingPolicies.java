package dev.freshet.operators.scheduling;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.BiFunction;

/** The policies by name. */
public final class SchedulingPolicies {

  private static final Map<String, BiFunction<RegretSettings, Long, SchedulingPolicy>> POLICIES =
      new LinkedHashMap<>();

  static {
    POLICIES.put(RegretProportionalPolicy.NAME, (r, seed) -> new RegretProportionalPolicy(r));
    POLICIES.put(RisingRegretPolicy.NAME, (r, seed) -> new RisingRegretPolicy(r));
    POLICIES.put(RegretOverBaselinePolicy.NAME, (r, seed) -> new RegretOverBaselinePolicy(r));
    POLICIES.put(RegretPerCostPolicy.NAME, (r, seed) -> new RegretPerCostPolicy(r));
    POLICIES.put(QueryProportionalPolicy.NAME, (r, seed) -> new QueryProportionalPolicy(r));
    POLICIES.put(RoundRobinPolicy.NAME, (r, seed) -> new RoundRobinPolicy());
    POLICIES.put(RandomPolicy.NAME, (r, seed) -> new RandomPolicy(seed));
    POLICIES.put(MinimumPastPolicy.NAME, (r, seed) -> new MinimumPastPolicy());
    POLICIES.put(MaxPendingPolicy.NAME, (r, seed) -> new MaxPendingPolicy());
    POLICIES.put(FifoPolicy.NAME, (r, seed) -> new FifoPolicy());
  }

  /** Names of all policies. */
  public static final List<String> NAMES = List.copyOf(POLICIES.keySet());

  private SchedulingPolicies() {}

  /**
   * The policy of this name.
   *
   * @param regret how regret that nobody has measured is set
   * @param seed of policies with chance in them
   * @throws IllegalArgumentException if there is none
   */
  public static SchedulingPolicy create(String name, RegretSettings regret, long seed) {
    BiFunction<RegretSettings, Long, SchedulingPolicy> policy = POLICIES.get(name);
    if (policy == null) {
      throw new IllegalArgumentException(
          "policy '" + name + "' is unknown; use one of " + String.join(", ", NAMES));
    }
    return policy.apply(regret, seed);
  }

  /**
   * Checks that a table gives a policy what it can't do without.
   *
   * @param keepVersions versions of a value that the table keeps
   * @throws IllegalArgumentException with what is missing, and why
   */
  static void check(SchedulingPolicy policy, int keepVersions) {
    if (policy.needs().contains(SchedulingPolicy.Need.KEPT_VERSIONS) && keepVersions < 2) {
      throw new IllegalArgumentException(
          "policy '"
              + policy.name()
              + "' learns from feedback on several versions of a value, and the table keeps "
              + keepVersions
              + "; set keep_versions to 2 or more");
    }
  }
}
