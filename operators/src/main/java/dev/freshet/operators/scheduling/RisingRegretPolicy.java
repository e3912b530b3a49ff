package dev.freshet.operators.scheduling;

/**
 * Recomputes the key with the largest regret, weighted by whether its errors rise: the regret (RALF
 * §2.3.3, eq. 2.9, with a default for each pending event) times the square root of the ratio of the
 * recent error to the mean error since the update.
 *
 * <p>That is the geometric mean of two estimates of what a stale value costs from now on: the
 * regret that there was, and the regret that there would have been had the recent error been there
 * from the start. The first lags behind a change, the second is noisy.
 *
 * @param settings default regret, cap, and the regret of a missing value
 */
public record RisingRegretPolicy(RegretSettings settings) implements RegretPolicy {

  /** Name of the policy. */
  public static final String NAME = "rising-regret";

  @Override
  public String name() {
    return NAME;
  }

  @Override
  public double score(KeyRecord record) {
    return settings.regret(record) * rise(record);
  }

  private static double rise(KeyRecord record) {
    return record.regret() > 0
        ? Math.sqrt(record.recentError() * record.errors() / record.regret())
        : 1;
  }
}
