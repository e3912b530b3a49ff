package dev.freshet.operators.scheduling;

import java.util.List;

/** The policies by name. */
public final class SchedulingPolicies {

  /** Names of all policies. */
  public static final List<String> NAMES =
      List.of(RegretProportionalPolicy.NAME, RoundRobinPolicy.NAME, FifoPolicy.NAME);

  private SchedulingPolicies() {}

  /**
   * The policy of this name.
   *
   * @throws IllegalArgumentException if there is none
   */
  public static SchedulingPolicy create(String name, double defaultRegret, double maxRegret) {
    return switch (name) {
      case RegretProportionalPolicy.NAME -> new RegretProportionalPolicy(defaultRegret, maxRegret);
      case RoundRobinPolicy.NAME -> new RoundRobinPolicy();
      case FifoPolicy.NAME -> new FifoPolicy();
      default ->
          throw new IllegalArgumentException(
              "policy '" + name + "' is unknown; use one of " + String.join(", ", NAMES));
    };
  }
}
