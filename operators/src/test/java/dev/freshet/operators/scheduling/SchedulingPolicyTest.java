package dev.freshet.operators.scheduling;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.within;

import dev.freshet.operators.scheduling.SchedulingPolicy.Need;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** How policies score a record. */
class SchedulingPolicyTest {

  private static final RegretSettings REGRET = new RegretSettings(0.5, 100);

  @Test
  void regretIsErrorsPlusDefaultRegretForEachPendingEvent() {
    SchedulingPolicy policy = new RegretProportionalPolicy(REGRET);
    KeyRecord record = computed(1_000);
    feedback(record, 2, Double.NaN);
    record.eventPending(10);
    record.eventPending(20);
    assertThat(policy.priority(record)).isEqualTo(3.0);
    assertThat(record.queries()).isEqualTo(2);
    assertThat(record.errors()).isEqualTo(1);
  }

  @Test
  void regretIsCapped() {
    SchedulingPolicy policy = new RegretProportionalPolicy(REGRET);
    KeyRecord record = computed(1_000);
    feedback(record, 1e9);
    assertThat(policy.priority(record)).isEqualTo(100);
  }

  @Test
  void keyWithoutValueHasTheCap() {
    assertThat(new RegretProportionalPolicy(REGRET).priority(new KeyRecord())).isEqualTo(100);
    assertThat(new RegretOverBaselinePolicy(REGRET).priority(new KeyRecord())).isEqualTo(100);
    assertThat(new RegretPerCostPolicy(REGRET).priority(new KeyRecord())).isEqualTo(100);
    assertThat(new QueryProportionalPolicy(REGRET).priority(new KeyRecord()))
        .isEqualTo(Double.POSITIVE_INFINITY);
  }

  @Test
  void keyWithoutValueCompetesWhereTheTableSaysHow() {
    RegretSettings missing = new RegretSettings(0.5, 100, 3.0);
    KeyRecord record = new KeyRecord();
    record.eventPending(10);
    feedback(record, 2);
    assertThat(new RegretProportionalPolicy(missing).priority(record)).isEqualTo(5.5);
    assertThat(new RegretOverBaselinePolicy(missing).priority(record)).isEqualTo(5.0);
    assertThat(new QueryProportionalPolicy(missing).priority(record)).isEqualTo(4.0);
    KeyRecord computed = computed(1_000);
    feedback(computed, 2);
    assertThat(new RegretProportionalPolicy(missing).priority(computed)).isEqualTo(2.0);
    assertThat(new QueryProportionalPolicy(missing).priority(computed)).isEqualTo(1.0);
  }

  @Test
  void regretOverBaselineIsWhatErrorsGrewSinceTheFirstRound() {
    SchedulingPolicy policy = new RegretOverBaselinePolicy(REGRET);
    KeyRecord record = computed(1_000);
    record.eventPending(10);
    assertThat(policy.priority(record)).as("no feedback").isZero();
    feedbackInRound(record, Double.NaN, 100);
    feedbackInRound(record, 0.1, 200);
    feedbackInRound(record, 0.2, 200);
    feedbackInRound(record, 0.3, 200);
    assertThat(record.baselineError()).isCloseTo(0.2, within(1e-15));
    assertThat(policy.priority(record)).as("the first round, exactly").isZero();
    feedbackInRound(record, 0.5, 300);
    assertThat(policy.priority(record)).isCloseTo(0.3, within(1e-15));
    feedbackInRound(record, 0.0, 400);
    feedbackInRound(record, 0.0, 400);
    assertThat(policy.priority(record)).as("may be negative").isCloseTo(-0.1, within(1e-15));
    feedbackInRound(record, 1e9, 500);
    assertThat(policy.priority(record)).isEqualTo(100);
  }

  @Test
  void regretPerCostIsRegretForEachSecondOfComputing() {
    SchedulingPolicy policy = new RegretPerCostPolicy(new RegretSettings(0.5, 1e12));
    KeyRecord record = computed(1_000);
    feedback(record, 3);
    assertThat(policy.priority(record)).as("not measured: as cheap as can be").isEqualTo(3e6);
    record.computed(2_000_000_000);
    assertThat(policy.priority(record)).isEqualTo(1.5);
    record.computed(1_000_000_000);
    assertThat(record.costNanos()).as("moving average").isEqualTo(1.8e9);
    KeyRecord instant = computed(1_000);
    feedback(instant, 3);
    instant.computed(0);
    assertThat(policy.priority(instant)).isEqualTo(3e6);
  }

  @Test
  void queryProportionalCountsQueriesSinceTheUpdate() {
    SchedulingPolicy policy = new QueryProportionalPolicy(REGRET);
    KeyRecord record = computed(1_000);
    feedback(record, 50, Double.NaN, 0);
    assertThat(policy.priority(record)).isEqualTo(3);
    recompute(record, 2_000);
    assertThat(policy.priority(record)).isZero();
  }

  @Test
  void minimumPastCountsWhatComputationsTookIn() {
    SchedulingPolicy policy = new MinimumPastPolicy();
    KeyRecord record = new KeyRecord();
    assertThat(policy.priority(record)).isZero();
    record.eventPending(10);
    record.eventPending(20);
    record.startComputation(1_000, 20, 0, Long.MAX_VALUE);
    record.undoComputation();
    assertThat(policy.priority(record)).as("lost: nothing was taken in").isZero();
    recompute(record, 2_000);
    assertThat(policy.priority(record)).isEqualTo(-2);
    record.eventPending(30);
    record.startComputation(3_000, 30, 0, Long.MAX_VALUE);
    record.failComputation(0);
    assertThat(policy.priority(record)).as("failed: it was").isEqualTo(-3);
  }

  @Test
  void maxPendingCountsWhatIsNotTakenIn() {
    SchedulingPolicy policy = new MaxPendingPolicy();
    KeyRecord record = computed(1_000);
    record.eventPending(10);
    record.eventPending(11);
    assertThat(policy.priority(record)).isEqualTo(2);
  }

  @Test
  void roundRobinPrefersTheLeastRecentlyChosen() {
    SchedulingPolicy policy = new RoundRobinPolicy();
    assertThat(policy.priority(new KeyRecord())).isGreaterThan(policy.priority(computed(1_000)));
    assertThat(policy.priority(computed(1_000))).isGreaterThan(policy.priority(computed(2_000)));
    assertThat(policy.priority(computed(1_000))).isEqualTo(policy.priority(computed(1_999)));
    // Milliseconds of today are exact in a double.
    long now = 1_800_000_000_000_000L;
    assertThat(policy.priority(computed(now)))
        .isGreaterThan(policy.priority(computed(now + 1_000)));
  }

  @Test
  void fifoPrefersTheOldestEvent() {
    SchedulingPolicy policy = new FifoPolicy();
    KeyRecord older = new KeyRecord();
    older.eventPending(20);
    older.eventPending(10);
    KeyRecord newer = new KeyRecord();
    newer.eventPending(11);
    assertThat(policy.priority(older)).isGreaterThan(policy.priority(newer));
    assertThat(policy.consumption()).isEqualTo(SchedulingPolicy.Consumption.OLDEST_PENDING);
  }

  @Test
  void recentErrorWeighsTheNewestErrorsOfTheCurrentVersionMost() {
    KeyRecord record = computed(1_000);
    assertThat(record.recentError()).isZero();
    feedback(record, 1, Double.NaN, 6, 2, 3, 3);
    assertThat(record.recentError()).as("mean of the first five").isEqualTo(3);
    feedback(record, 8);
    assertThat(record.recentError()).as("moving average").isEqualTo(4);
    recompute(record, 2_000);
    assertThat(record.recentError()).as("of a version without feedback").isZero();
  }

  @Test
  void risingRegretPrefersTheErrorsThatGrow() {
    SchedulingPolicy policy = new RisingRegretPolicy(new RegretSettings(1e-9, 1e12));
    KeyRecord growing = computed(1_000);
    feedback(growing, 1, 1, 1, 1, 1, 1, 4, 4, 4);
    KeyRecord shrinking = computed(1_000);
    feedback(shrinking, 4, 4, 4, 1, 1, 1, 1, 1, 1);
    KeyRecord steady = computed(1_000);
    feedback(steady, 2, 2, 2, 2, 2, 2, 2, 2, 2);
    assertThat(policy.priority(growing)).isGreaterThan(policy.priority(steady));
    assertThat(policy.priority(steady)).as("neither rises nor falls").isEqualTo(18);
    assertThat(policy.priority(steady)).isGreaterThan(policy.priority(shrinking));
    assertThat(policy.priority(new KeyRecord())).as("without a value").isEqualTo(1e12);
  }

  @Test
  void everyNameMakesItsPolicy() {
    for (String name : SchedulingPolicies.NAMES) {
      assertThat(SchedulingPolicies.create(name, REGRET, 7).name()).isEqualTo(name);
    }
    assertThatIllegalArgumentException()
        .isThrownBy(() -> SchedulingPolicies.create("lifo", REGRET, 7))
        .withMessageContaining("'lifo'")
        .withMessageContaining("round-robin");
  }

  @Test
  void policyThatNeedsSeveralVersionsIsRefusedWithOne() {
    SchedulingPolicy needy =
        new SchedulingPolicy() {
          @Override
          public String name() {
            return "needy";
          }

          @Override
          public Set<Need> needs() {
            return Set.of(Need.KEPT_VERSIONS);
          }

          @Override
          public double priority(KeyRecord record) {
            return 0;
          }
        };
    assertThatCode(() -> SchedulingPolicies.check(needy, 2)).doesNotThrowAnyException();
    assertThatIllegalArgumentException()
        .isThrownBy(() -> SchedulingPolicies.check(needy, 1))
        .withMessageContaining("'needy'")
        .withMessageContaining("set keep_versions to 2");
    for (SchedulingPolicy policy : TestSettings.everyPolicy()) {
      assertThatCode(() -> SchedulingPolicies.check(policy, 1)).doesNotThrowAnyException();
    }
  }

  /** The same numbers are in the test of the reference model. */
  @Test
  void lotsAreHashesOfSeedKeyAndStep() {
    assertThat(new RandomPolicy(0).lot("vm-17", 0)).isEqualTo(0.8983108877707906);
    assertThat(new RandomPolicy(0).lot("vm-17", 60_000)).isEqualTo(0.9368078731815104);
    assertThat(new RandomPolicy(42).lot("vm-17", 60_000)).isEqualTo(0.6736852342998204);
    assertThat(new RandomPolicy(-1).lot("cl\u00e9 \ud835\uded1 0", 1_479_081_600_000L))
        .isEqualTo(0.853807161004652);
  }

  private static void feedback(KeyRecord record, double... errors) {
    for (double error : errors) {
      feedbackInRound(record, error, 0);
    }
  }

  private static void feedbackInRound(KeyRecord record, double error, long round) {
    record.feedback(new QueryFeedback(record.version(), error), round);
  }

  private static KeyRecord computed(long timestampMicros) {
    KeyRecord record = new KeyRecord();
    recompute(record, timestampMicros);
    return record;
  }

  private static void recompute(KeyRecord record, long timestampMicros) {
    record.startComputation(timestampMicros, 5, 0, Long.MAX_VALUE);
    record.completeComputation(1);
  }
}
