package dev.freshet.operators.scheduling;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import org.junit.jupiter.api.Test;

/** How policies score a record. */
class SchedulingPolicyTest {

  @Test
  void regretIsErrorsPlusDefaultRegretForEachPendingEvent() {
    SchedulingPolicy policy = new RegretProportionalPolicy(0.5, 100);
    KeyRecord record = computed(1_000);
    record.feedback(2);
    record.feedback(Double.NaN);
    record.eventPending(10);
    record.eventPending(20);
    assertThat(policy.priority(record)).isEqualTo(3.0);
    assertThat(record.queries()).isEqualTo(2);
    assertThat(record.errors()).isEqualTo(1);
  }

  @Test
  void regretIsCapped() {
    SchedulingPolicy policy = new RegretProportionalPolicy(0.5, 100);
    KeyRecord record = computed(1_000);
    record.feedback(1e9);
    assertThat(policy.priority(record)).isEqualTo(100);
  }

  @Test
  void keyWithoutValueHasTheCap() {
    assertThat(new RegretProportionalPolicy(0.5, 100).priority(new KeyRecord())).isEqualTo(100);
  }

  @Test
  void roundRobinPrefersTheLeastRecentlyChosen() {
    SchedulingPolicy policy = new RoundRobinPolicy();
    assertThat(policy.priority(new KeyRecord())).isGreaterThan(policy.priority(computed(1_000)));
    assertThat(policy.priority(computed(1_000))).isGreaterThan(policy.priority(computed(1_001)));
    // Microseconds of today are exact in a double.
    long now = 1_800_000_000_000_000L;
    assertThat(policy.priority(computed(now))).isGreaterThan(policy.priority(computed(now + 1)));
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
  void everyNameMakesItsPolicy() {
    for (String name : SchedulingPolicies.NAMES) {
      assertThat(SchedulingPolicies.create(name, 1, 2).name()).isEqualTo(name);
    }
    assertThatIllegalArgumentException()
        .isThrownBy(() -> SchedulingPolicies.create("lifo", 1, 2))
        .withMessageContaining("'lifo'")
        .withMessageContaining("round-robin");
  }

  private static KeyRecord computed(long timestampMicros) {
    KeyRecord record = new KeyRecord();
    record.startComputation(timestampMicros, 5, 0, Long.MAX_VALUE);
    record.completeComputation(1);
    return record;
  }
}
