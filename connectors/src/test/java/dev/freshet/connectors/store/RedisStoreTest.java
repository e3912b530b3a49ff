package dev.freshet.connectors.store;

import static dev.freshet.connectors.testing.Changes.upsert;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.tuple;

import dev.freshet.connectors.format.DeploymentConfig;
import dev.freshet.connectors.format.TableConfig;
import dev.freshet.connectors.record.Version;
import dev.freshet.connectors.testing.TestConfigs;
import dev.freshet.connectors.testing.TestRedis;
import dev.freshet.schemas.FeatureChange;
import dev.freshet.schemas.Operation;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import net.jqwik.api.Example;
import net.jqwik.api.ForAll;
import net.jqwik.api.From;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.constraints.IntRange;
import net.jqwik.api.constraints.Size;
import net.jqwik.api.lifecycle.AfterContainer;
import net.jqwik.api.lifecycle.BeforeContainer;

/**
 * The script on a real Redis: its decision is {@link Version}'s order, whoever writes at once, and
 * what a key holds is a function of the set of versions written to it.
 */
final class RedisStoreTest {

  private static TestRedis redis;
  private static RedisStore store;
  private static DeploymentConfig.Redis config;

  @BeforeContainer
  static void start() throws Exception {
    redis = TestRedis.start();
    config = DeploymentConfig.parse(TestConfigs.deployment(redis.url(), false)).redis();
    store = new RedisStore(config, new Quiet());
  }

  @AfterContainer
  static void stop() throws Exception {
    store.close();
    redis.close();
  }

  @Example
  void anAddressThatIsNoUrlIsNotQuoted() {
    DeploymentConfig.Redis wrong =
        DeploymentConfig.parse(TestConfigs.deployment("redis://me:hid den@cache", false)).redis();
    assertThat(wrong.toString()).doesNotContain("den");
    assertThatThrownBy(() -> new RedisStore(wrong, new Quiet()))
        .isInstanceOf(StoreException.class)
        .hasMessageContaining("percent-encoded")
        .hasMessageNotContaining("den@")
        .hasNoCause();
  }

  private static final class Quiet implements StoreListener {
    @Override
    public void connected(Set<String> runIds) {}

    @Override
    public void disconnected() {}
  }

  private static StoreWrite write(String key, Version version) {
    return StoreWrite.of(upsert(key, version.timestampMicros(), version.origin(), 1), config);
  }

  private static int[] attempt(RedisStore on, List<StoreWrite> batch) throws Exception {
    return attempt(on, batch, 1);
  }

  private static int[] attempt(RedisStore on, List<StoreWrite> batch, int keepVersions)
      throws Exception {
    WriteOutcome outcome = on.write(batch, keepVersions).get();
    assertThat(outcome.failure()).isNull();
    return outcome.codes();
  }

  private static Version stored(String key) {
    try (TestRedis.Inspector inspector = redis.inspect()) {
      return StoreLayout.decode(
              inspector.commands().get(StoreLayout.key("", TestConfigs.TABLE, key)))
          .version();
    }
  }

  /** Timestamps where doubles, signs and the halves of 64 bits could go wrong. */
  @Provide
  Arbitrary<Version> versions() {
    Arbitrary<Long> timestamps =
        Arbitraries.oneOf(
            Arbitraries.longs().between(0, 3),
            Arbitraries.longs().between((1L << 32) - 2, (1L << 32) + 2),
            Arbitraries.longs().between((1L << 31) - 2, (1L << 31) + 2),
            Arbitraries.longs().between((1L << 53) - 2, (1L << 53) + 2),
            Arbitraries.longs().between((1L << 63) - 3, Long.MAX_VALUE),
            Arbitraries.longs().between(0, Long.MAX_VALUE));
    Arbitrary<Integer> origins =
        Arbitraries.oneOf(Arbitraries.of(0, 1, 255, 256, 0x7FFF, 0x8000, 0xFFFF));
    return Combinators.combine(timestamps, origins).as(Version::new);
  }

  @Property(tries = 1_000)
  void theScriptDecidesAsVersionsAreOrdered(
      @ForAll("versions") Version first, @ForAll("versions") Version second) throws Exception {
    String key = first + "-" + second + "-" + System.nanoTime();
    int[] codes = attempt(store, List.of(write(key, first), write(key, second)));
    assertThat(codes[0]).isEqualTo(WriteCode.WRITTEN);
    assertThat(codes[1]).isEqualTo(Integer.signum(second.compareTo(first)));
  }

  /** A write of some version, or its tombstone, as the script takes it. */
  private static StoreWrite write(String key, Version version, boolean delete) {
    FeatureChange change =
        upsert(key, version.timestampMicros(), version.origin(), version.origin());
    if (delete) {
      change.setOperation(Operation.DELETE);
    }
    return StoreWrite.of(change, config);
  }

  /** The model: the newest versions, and none older than a tombstone among them. */
  private static List<Version> newest(Map<Version, Boolean> deletes, int most) {
    List<Version> kept = new ArrayList<>();
    for (Version version : new TreeMap<>(deletes).descendingKeySet()) {
      if (kept.size() == most) {
        break;
      }
      kept.add(version);
      if (deletes.get(version)) {
        break;
      }
    }
    return kept;
  }

  /** The model: what the script answers to a write. */
  private static int answer(Version version, List<Version> before, List<Version> after) {
    if (before.contains(version)) {
      return WriteCode.DUPLICATE;
    }
    if (!after.contains(version)) {
      return WriteCode.STALE;
    }
    return after.get(0).equals(version) ? WriteCode.WRITTEN : WriteCode.KEPT_AS_OLDER;
  }

  @Property(tries = 200)
  void theNewestVersionsStayInAnyOrderAndNumber(
      @ForAll @Size(min = 1, max = 12) List<@From("versions") Version> versions,
      @ForAll @IntRange(min = 2, max = TableConfig.MAX_KEEP_VERSIONS) int most,
      @ForAll @IntRange(max = 4) int deleteEvery,
      @ForAll Random random)
      throws Exception {
    List<Version> order = new ArrayList<>(versions);
    order.addAll(versions.subList(0, random.nextInt(versions.size() + 1)));
    Collections.shuffle(order, random);
    String key = "several-" + System.nanoTime();
    Map<Version, Boolean> written = new HashMap<>();
    try (TestRedis.Inspector inspector = redis.inspect();
        RedisStore several = new RedisStore(config, new Quiet())) {
      for (Version version : order) {
        boolean delete = deleteEvery > 0 && version.origin() % (deleteEvery + 1) == 1;
        List<Version> before = newest(written, most);
        written.put(version, delete);
        List<Version> after = newest(written, most);
        assertThat(attempt(several, List.of(write(key, version, delete)), most))
            .containsExactly(answer(version, before, after));
        byte[] stored = inspector.commands().get(StoreLayout.key("", TestConfigs.TABLE, key));
        assertThat(StoreLayout.decodeAll(stored))
            .extracting(StoredValue::version, StoredValue::tombstone)
            .containsExactlyElementsOf(
                after.stream().map(kept -> tuple(kept, written.get(kept))).toList());
      }
    }
  }

  @Example
  void concurrentWritersEndWithTheNewest() throws Exception {
    int writers = 4;
    int keys = 500;
    ExecutorService threads = Executors.newFixedThreadPool(writers);
    List<Future<Map<String, Version>>> written = new ArrayList<>();
    for (int writer = 0; writer < writers; writer++) {
      int origin = writer;
      written.add(threads.submit(() -> writeAtRandom(origin, keys)));
    }
    Map<String, Version> newest = new HashMap<>();
    for (Future<Map<String, Version>> of : written) {
      of.get().forEach((key, v) -> newest.merge(key, v, (a, b) -> a.compareTo(b) > 0 ? a : b));
    }
    threads.shutdown();
    assertThat(newest).hasSize(keys);
    try (TestRedis.Inspector inspector = redis.inspect()) {
      newest.forEach(
          (key, version) ->
              assertThat(
                      StoreLayout.decode(
                              inspector.commands().get(StoreLayout.key("", TestConfigs.TABLE, key)))
                          .version())
                  .as(key)
                  .isEqualTo(version));
    }
  }

  /** Writes versions in no order; gives the newest of each key. */
  private static Map<String, Version> writeAtRandom(int origin, int keys) throws Exception {
    Random random = new Random(origin);
    Map<String, Version> newest = new HashMap<>();
    try (RedisStore own = new RedisStore(config, new Quiet())) {
      for (int round = 0; round < 100; round++) {
        List<StoreWrite> batch = new ArrayList<>();
        for (int i = 0; i < 100; i++) {
          String key = "concurrent-" + (round == 0 ? i * 5 + origin : random.nextInt(keys));
          Version version = new Version(random.nextInt(50), origin);
          newest.merge(key, version, (a, b) -> a.compareTo(b) > 0 ? a : b);
          batch.add(write(key, version));
        }
        if (round == 0) {
          for (int key = 0; key < keys; key++) {
            Version version = new Version(0, origin);
            newest.merge("concurrent-" + key, version, (a, b) -> a.compareTo(b) > 0 ? a : b);
            batch.add(write("concurrent-" + key, version));
          }
        }
        attempt(own, batch);
      }
    }
    return newest;
  }

  @Example
  void aLayoutToComeIsLeftAlone() throws Exception {
    byte[] future = StoreLayout.encode(upsert("future", 1, 1));
    future[0] = 2;
    try (TestRedis.Inspector inspector = redis.inspect()) {
      inspector.commands().set(StoreLayout.key("", TestConfigs.TABLE, "future"), future);
      assertThat(
              attempt(
                  store,
                  List.of(write("future", new Version(9, 1)), write("now", new Version(9, 1)))))
          .containsExactly(WriteCode.FOREIGN, WriteCode.WRITTEN);
      assertThat(inspector.commands().get(StoreLayout.key("", TestConfigs.TABLE, "future")))
          .isEqualTo(future);
    }
    assertThat(stored("now")).isEqualTo(new Version(9, 1));
  }
}
