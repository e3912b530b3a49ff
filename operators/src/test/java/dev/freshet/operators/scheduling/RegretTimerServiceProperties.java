package dev.freshet.operators.scheduling;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeSet;
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
    POLL,
    REPRIORITIZE
  }

  private record Step(Action action, String key, double priority, long lastChosenMs) {
    Place place() {
      // Negative zero is no priority of its own.
      return new Place(priority + 0.0, lastChosenMs);
    }
  }

  /** What orders a key. */
  private record Place(double priority, long lastChosenMs) {
    static final Comparator<Place> ORDER =
        Comparator.comparingDouble(Place::priority)
            .reversed()
            .thenComparingLong(Place::lastChosenMs);
  }

  private static final Comparator<Map.Entry<String, Place>> ORDER =
      Map.Entry.<String, Place>comparingByValue(Place.ORDER)
          .thenComparing(Map.Entry.comparingByKey());

  @Provide
  Arbitrary<List<Step>> sequences() {
    Arbitrary<String> keys = Arbitraries.integers().between(0, 40).map(i -> "key-" + i);
    // Few distinct priorities, so that ties are common.
    Arbitrary<Double> priorities =
        Arbitraries.of(
            0.0, -0.0, 1.0, 2.0, 2.5, -7.0, 1e300, Double.MAX_VALUE, Double.NEGATIVE_INFINITY);
    Arbitrary<Action> actions =
        Arbitraries.of(
            Action.SCHEDULE,
            Action.SCHEDULE,
            Action.SCHEDULE,
            Action.CANCEL,
            Action.POLL,
            Action.REPRIORITIZE);
    return Combinators.combine(actions, keys, priorities, Arbitraries.longs().between(0, 2))
        .as(Step::new)
        .list()
        .ofMaxSize(400);
  }

  @Property(tries = 500)
  void firesAsTheModelDoes(@ForAll("sequences") List<Step> sequence) {
    RegretTimerService service = new RegretTimerService();
    Map<String, Place> model = new HashMap<>();
    for (Step step : sequence) {
      switch (step.action()) {
        case SCHEDULE -> {
          service.schedule(step.key(), step.priority(), step.lastChosenMs());
          model.put(step.key(), step.place());
        }
        case CANCEL -> {
          service.cancel(step.key());
          model.remove(step.key());
        }
        case POLL -> assertThat(service.poll()).isEqualTo(pollModel(model));
        case REPRIORITIZE -> {
          service.reprioritize(key -> key.hashCode() % 3 + step.priority());
          model.replaceAll(
              (key, place) ->
                  new Place(key.hashCode() % 3 + step.priority() + 0.0, place.lastChosenMs()));
        }
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

  /** Many keys, so that tables grow, and among them keys that collide in every table. */
  @Property(tries = 50)
  void firesAsTheModelDoesWhileItGrowsAndShrinks(@ForAll Random random) {
    RegretTimerService service = new RegretTimerService();
    Map<String, Place> places = new HashMap<>();
    TreeSet<Map.Entry<String, Place>> order = new TreeSet<>(ORDER);
    int schedules = 0;
    for (int step = 0; step < 4_000; step++) {
      // Phases of growing and shrinking: of 20 actions, 16 or 4 schedule.
      boolean growing = step / 1_000 % 2 == 0;
      String key = random.nextInt(4) == 0 ? colliding(random) : "key-" + random.nextInt(2_000);
      Place place = new Place(random.nextInt(20), random.nextInt(3));
      if (random.nextInt(20) < (growing ? 16 : 4)) {
        service.schedule(key, place.priority(), place.lastChosenMs());
        Place before = places.put(key, place);
        if (before != null) {
          order.remove(Map.entry(key, before));
        }
        order.add(Map.entry(key, place));
        schedules++;
      } else if (random.nextBoolean()) {
        service.cancel(key);
        Place before = places.remove(key);
        if (before != null) {
          order.remove(Map.entry(key, before));
        }
      } else {
        Map.Entry<String, Place> first = order.pollFirst();
        assertThat(service.poll()).isEqualTo(first == null ? null : first.getKey());
        if (first != null) {
          places.remove(first.getKey());
        }
      }
      assertThat(service.size()).isEqualTo(places.size());
      assertThat(service.peek()).isEqualTo(order.isEmpty() ? null : order.first().getKey());
      assertThat(service.isScheduled(key)).isEqualTo(places.containsKey(key));
    }
    assertThat(schedules).isGreaterThan(1_000);
    while (!order.isEmpty()) {
      assertThat(service.poll()).isEqualTo(order.pollFirst().getKey());
    }
    assertThat(service.poll()).isNull();
  }

  /** One of 64 keys with equal hash codes. */
  private static String colliding(Random random) {
    StringBuilder key = new StringBuilder();
    for (int i = 0; i < 6; i++) {
      key.append(random.nextBoolean() ? "Aa" : "BB");
    }
    return key.toString();
  }

  private static String pollModel(Map<String, Place> model) {
    String first = firstOf(model);
    model.remove(first);
    return first;
  }

  private static String firstOf(Map<String, Place> model) {
    return model.entrySet().stream().min(ORDER).map(Map.Entry::getKey).orElse(null);
  }

  @Example
  void nanIsRejectedWithTheKey() {
    RegretTimerService service = new RegretTimerService();
    assertThatIllegalArgumentException()
        .isThrownBy(() -> service.schedule("k", Double.NaN, 0))
        .withMessageContaining("'k'");
    service.schedule("k", 1, 0);
    assertThatIllegalArgumentException()
        .isThrownBy(() -> service.reprioritize(key -> Double.NaN))
        .withMessageContaining("'k'");
  }

  @Property
  void anyKeyCanBeTakenOut(@ForAll("sequences") List<Step> sequence, @ForAll Random random) {
    RegretTimerService service = new RegretTimerService();
    Map<String, Place> model = new HashMap<>();
    for (Step step : sequence) {
      service.schedule(step.key(), step.priority(), step.lastChosenMs());
      model.put(step.key(), step.place());
      if (random.nextInt(3) == 0) {
        String key = service.pollAny(random.nextInt(service.size()));
        assertThat(model.remove(key)).isNotNull();
        assertThat(service.isScheduled(key)).isFalse();
      }
      assertThat(service.peek()).isEqualTo(firstOf(model));
    }
  }

  @Example
  void clearForgetsAll() {
    RegretTimerService service = new RegretTimerService();
    service.schedule("a", 1, 0);
    service.clear();
    assertThat(service.isEmpty()).isTrue();
    assertThat(service.isScheduled("a")).isFalse();
    service.schedule("b", 1, 0);
    assertThat(service.poll()).isEqualTo("b");
  }

  @Example
  void twoServicesCompareTheirFirstKeys() {
    RegretTimerService some = new RegretTimerService();
    RegretTimerService other = new RegretTimerService();
    assertThat(some.firesBefore(other)).as("both empty").isFalse();
    some.schedule("b", 1, 0);
    assertThat(some.firesBefore(other)).as("the other is empty").isTrue();
    assertThat(other.firesBefore(some)).isFalse();
    other.schedule("a", 1, 0);
    assertThat(some.firesBefore(other)).as("tie by key").isFalse();
    other.schedule("a", 1, 7);
    assertThat(some.firesBefore(other)).as("chosen longer ago").isTrue();
    other.schedule("a", 1, 0);
    some.schedule("b", 2, 0);
    assertThat(some.firesBefore(other)).isTrue();
  }
}
