package dev.freshet.operators.dissemination;

import static org.assertj.core.api.Assertions.assertThat;

import dev.freshet.connectors.chunk.KeyChange;
import dev.freshet.connectors.chunk.OffsetRanges;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.ShrinkingMode;
import net.jqwik.api.Tuple;

/**
 * Goal: whatever happens to chunks, to regions and to home, a region never believes that it has
 * what it has not, and in the end all have everything. Method: random steps, over a simulated
 * network; the belief is checked after each, the rest after everything was let through.
 */
class DisseminationPropertiesTest {

  private static final List<String> REGIONS = List.of("c:a", "c:b", "c:d");
  private static final List<List<List<String>>> STAR =
      List.of(
          List.of(List.of("c:home", "c:a"), List.of("c:home", "c:b"), List.of("c:home", "c:d")));
  private static final List<List<List<String>>> CHAINS =
      List.of(
          List.of(
              List.of("c:home", "c:w"),
              List.of("c:w", "c:a"),
              List.of("c:a", "c:b"),
              List.of("c:home", "c:d")),
          List.of(List.of("c:home", "c:b"), List.of("c:b", "c:a"), List.of("c:b", "c:d")));

  /** One step of a run. */
  @FunctionalInterface
  interface Step {
    void take(SimulatedRegions world);
  }

  private record Named(String name, Step step) {
    @Override
    public String toString() {
      return name;
    }
  }

  @Property(tries = 300, shrinking = ShrinkingMode.BOUNDED)
  void regionsNeverBelieveTooMuchAndEndEqual(
      @ForAll("runs") List<Named> steps,
      @ForAll("caches") long cacheBytes,
      @ForAll("slos") long sloMs) {
    SimulatedRegions world = new SimulatedRegions(3, REGIONS, sloMs, cacheBytes);
    world.plan(CHAINS, List.of());
    for (Named step : steps) {
      step.step().take(world);
      checkBelief(world);
    }
    world.plan(CHAINS, List.of());
    world.settle();
    checkBelief(world);
    Map<String, String> reference = content(world.reference());
    world.regions.forEach(
        (name, region) ->
            assertThat(content(region.store)).as("store of %s", name).isEqualTo(reference));
  }

  private static Map<String, String> content(Map<String, KeyChange> changes) {
    Map<String, String> content = new TreeMap<>();
    changes.forEach((key, change) -> content.put(key, content(change)));
    return content;
  }

  private static String content(KeyChange change) {
    return change == null
        ? "nothing"
        : change.version() + " " + change.kind() + " " + Arrays.toString(change.value());
  }

  private static void checkBelief(SimulatedRegions world) {
    Map<String, KeyChange> newest = world.reference();
    world.regions.forEach(
        (name, region) ->
            region.known.forEach(
                (shard, known) -> checkBelief(world, newest, name, region, shard, known)));
  }

  private static void checkBelief(
      SimulatedRegions world,
      Map<String, KeyChange> newest,
      String name,
      SimulatedRegions.Region region,
      int shard,
      OffsetRanges known) {
    world
        .log
        .get(shard)
        .forEach(
            (offset, change) -> {
              if (change == newest.get(change.key()) && known.contains(offset - 1, offset)) {
                assertThat(content(region.store.get(change.key())))
                    .as("%s believes to have offset %d of shard %d", name, offset, shard)
                    .isEqualTo(content(change));
              }
            });
  }

  @Provide
  Arbitrary<Long> caches() {
    return Arbitraries.of(0L, 300L, 1_000_000L);
  }

  @Provide
  Arbitrary<Long> slos() {
    return Arbitraries.of(0L, 200L, 10_000L);
  }

  @Provide
  Arbitrary<List<Named>> runs() {
    Arbitrary<Named> change =
        Combinators.combine(
                Arbitraries.integers().between(0, 30),
                Arbitraries.doubles().between(0, 10),
                Arbitraries.integers().between(0, 9))
            .as(
                (key, regret, kind) ->
                    new Named(
                        "change " + key, world -> world.change("k" + key, regret, kind == 0)));
    Arbitrary<Named> elapse =
        Arbitraries.of(1, 20, 300, 3_000)
            .map(ms -> new Named("elapse " + ms, world -> world.elapse(ms)));
    Arbitrary<Named> region =
        Arbitraries.of(REGIONS)
            .map(name -> new Named("report " + name, world -> world.report(name)));
    Arbitrary<Named> empty =
        Arbitraries.of(REGIONS).map(name -> new Named("empty " + name, world -> world.empty(name)));
    return Arbitraries.frequencyOf(
            Tuple.of(30, change),
            Tuple.of(10, elapse),
            Tuple.of(8, region),
            Tuple.of(1, empty),
            Tuple.of(12, Arbitraries.just(new Named("deliver", SimulatedRegions::deliver))),
            Tuple.of(3, Arbitraries.just(new Named("lose", SimulatedRegions::lose))),
            Tuple.of(3, Arbitraries.just(new Named("fail", SimulatedRegions::failOldest))),
            Tuple.of(
                2,
                Arbitraries.just(
                    new Named("unacknowledged", SimulatedRegions::deliverUnacknowledged))),
            Tuple.of(4, Arbitraries.just(new Named("delay", SimulatedRegions::delay))),
            Tuple.of(1, Arbitraries.just(new Named("restart", world -> restart(world)))),
            Tuple.of(1, Arbitraries.just(new Named("star", world -> world.plan(STAR, List.of())))),
            Tuple.of(
                1,
                Arbitraries.just(
                    new Named(
                        "detach",
                        world -> world.plan(List.of(STAR.get(0).subList(0, 2)), List.of("c:d"))))),
            Tuple.of(
                1, Arbitraries.just(new Named("chains", world -> world.plan(CHAINS, List.of())))))
        .list()
        .ofMinSize(5)
        .ofMaxSize(120);
  }

  private static void restart(SimulatedRegions world) {
    world.restart();
    world.plan(CHAINS, List.of());
  }
}
