package dev.freshet.operators.scheduling;

/**
 * Recomputes the key with the largest cumulative regret since its last update (RALF §2.3.3, eq.
 * 2.9): the errors fed back on its current version, plus a default regret for each pending event,
 * so that no key starves, up to a cap.
 *
 * <p>The errors are summed as they are. Subtracting the error right after the update (eq. 2.11)
 * starves keys whose first error was large; the paper itself drops the term in practice.
 *
 * @param defaultRegret regret of one pending event, in units of the error; greater than 0
 * @param maxRegret cap, in units of the error; also the regret of a key that has no value yet,
 *     because there is nothing to serve
 */
public record RegretProportionalPolicy(double defaultRegret, double maxRegret)
    implements SchedulingPolicy {

  /** Name of the policy. */
  public static final String NAME = "regret-proportional";

  @Override
  public String name() {
    return NAME;
  }

  @Override
  public double priority(KeyRecord record) {
    if (!record.hasValue()) {
      return maxRegret;
    }
    return Math.min(maxRegret, record.regret() + defaultRegret * record.pending());
  }
}
