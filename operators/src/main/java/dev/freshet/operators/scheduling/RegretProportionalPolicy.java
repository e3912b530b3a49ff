package dev.freshet.operators.scheduling;

/**
 * Recomputes the key with the largest cumulative regret since its last update (RALF §2.3.3, eq.
 * 2.9): the errors fed back on its current version, plus a default regret for each pending event,
 * so that no key starves, up to a cap.
 *
 * <p>The errors are summed as they are. {@link RegretOverBaselinePolicy} subtracts the error right
 * after the update (eq. 2.11), which starves keys whose first error was large; the paper itself
 * drops the term in practice.
 *
 * @param settings default regret, cap, and the regret of a missing value
 */
public record RegretProportionalPolicy(RegretSettings settings) implements RegretPolicy {

  /** Name of the policy. */
  public static final String NAME = "regret-proportional";

  @Override
  public String name() {
    return NAME;
  }

  @Override
  public double score(KeyRecord record) {
    return settings.regret(record);
  }
}
