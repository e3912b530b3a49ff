package dev.freshet.operators.scheduling;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import net.jqwik.api.Example;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;

/** The indexed heap against a map that is searched from end to end. */
class RegretTimerServiceProperties {

  private enum Action {
    SCHEDULE,
    CANCEL,
    POLL
  }

  private record Step(Action action, String key, double priority) {}

  @Provide
  Arbitrary<List<Step>> sequences() {
    Arbitrary<String> keys = Arbitraries.integers().between(0, 40).map(i -> "key-" + i);
    // Few distinct priorities, so that ties are common.
    Arbitrary<Double> priorities =
        Arbitraries.of(
            0.0, -0.0, 1.0, 2.0, 2.5, -7.0, 1e300, Double.MAX_VALUE, Double.NEGATIVE_INFINITY);
    Arbitrary<Action> actions =
        Arbitraries.of(
            Action.SCHEDULE, Action.SCHEDULE, Action.SCHEDULE, Action.CANCEL, Action.POLL);
    return Combinators.combine(actions, keys, priorities).as(Step::new).list().ofMaxSize(400);
  }

  @Property(tries = 500)
  void firesAsTheModelDoes(@ForAll("sequences") List<Step> sequence) {
    RegretTimerService service = new RegretTimerService();
    Map<String, Double> model = new HashMap<>();
    for (Step step : sequence) {
      switch (step.action()) {
        case SCHEDULE -> {
          service.schedule(step.key(), step.priority());
          model.put(step.key(), step.priority() + 0.0);
        }
        case CANCEL -> {
          service.cancel(step.key());
          model.remove(step.key());
        }
        case POLL -> assertThat(service.poll()).isEqualTo(pollModel(model));
      }
      assertThat(service.size()).isEqualTo(model.size());
      assertThat(service.isEmpty()).isEqualTo(model.isEmpty());
      assertThat(service.peek()).isEqualTo(firstOf(model));
      assertThat(service.isScheduled(step.key())).isEqualTo(model.containsKey(step.key()));
    }
    while (!model.isEmpty()) {
      assertThat(service.poll()).isEqualTo(pollModel(model));
    }
    assertThat(service.poll()).isNull();
  }

  private static String pollModel(Map<String, Double> model) {
    String first = firstOf(model);
    model.remove(first);
    return first;
  }

  private static String firstOf(Map<String, Double> model) {
    Comparator<Map.Entry<String, Double>> order =
        Map.Entry.<String, Double>comparingByValue().reversed();
    return model.entrySet().stream()
        .min(order.thenComparing(Map.Entry.comparingByKey()))
        .map(Map.Entry::getKey)
        .orElse(null);
  }

  @Example
  void nanIsRejectedWithTheKey() {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> new RegretTimerService().schedule("k", Double.NaN))
        .withMessageContaining("'k'");
  }

  @Example
  void clearForgetsAll() {
    RegretTimerService service = new RegretTimerService();
    service.schedule("a", 1);
    service.clear();
    assertThat(service.isEmpty()).isTrue();
    assertThat(service.isScheduled("a")).isFalse();
    service.schedule("b", 1);
    assertThat(service.poll()).isEqualTo("b");
  }

  @Example
  void twoServicesCompareTheirFirstKeys() {
    RegretTimerService some = new RegretTimerService();
    RegretTimerService other = new RegretTimerService();
    assertThat(some.firesBefore(other)).as("both empty").isFalse();
    some.schedule("b", 1);
    assertThat(some.firesBefore(other)).as("the other is empty").isTrue();
    assertThat(other.firesBefore(some)).isFalse();
    other.schedule("a", 1);
    assertThat(some.firesBefore(other)).as("tie by key").isFalse();
    some.schedule("b", 2);
    assertThat(some.firesBefore(other)).isTrue();
  }
}
