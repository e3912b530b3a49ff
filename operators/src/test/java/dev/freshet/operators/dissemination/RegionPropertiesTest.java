package dev.freshet.operators.dissemination;

import static org.assertj.core.api.Assertions.assertThat;

import dev.freshet.connectors.chunk.ChunkCodec;
import dev.freshet.connectors.chunk.ChunkEntry;
import dev.freshet.connectors.chunk.Covered;
import dev.freshet.connectors.chunk.KeyChange;
import dev.freshet.connectors.chunk.OffsetRanges;
import dev.freshet.connectors.record.Version;
import dev.freshet.connectors.store.StoreLayout;
import dev.freshet.connectors.testing.TestRedis;
import dev.freshet.schemas.Purpose;
import dev.freshet.schemas.RegionReport;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.atomic.AtomicInteger;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.ShrinkingMode;
import net.jqwik.api.lifecycle.AfterContainer;
import net.jqwik.api.lifecycle.BeforeContainer;
import org.apache.flink.runtime.checkpoint.OperatorSubtaskState;

/**
 * Goal: a region never claims an offset whose change, or a newer one of its key, is not in its
 * store. Method: a random log, and chunks of it that come in any order, twice, damaged or not at
 * all, while the job restarts and the store loses its data; each report is compared with a real
 * Redis at the time it is made.
 */
final class RegionPropertiesTest {

  private static final int SHARDS = 2;
  private static final int STEPS = 14;

  private static final AtomicInteger TRIES = new AtomicInteger();
  private static TestRedis redis;
  private static TestRedis.Inspector inspector;

  @BeforeContainer
  static void start() throws Exception {
    redis = TestRedis.start();
    inspector = redis.inspect();
  }

  @AfterContainer
  static void stop() throws Exception {
    inspector.close();
    redis.close();
  }

  /** One run. */
  private static final class World {
    private final Random random;
    private final String table = "try" + TRIES.incrementAndGet();
    private final List<List<ChunkEntry>> logs = new ArrayList<>();
    private final List<byte[]> sentBefore = new ArrayList<>();
    private RegionHarness region;
    private int claims;

    World(long seed) throws Exception {
      random = new Random(seed);
      for (int shard = 0; shard < SHARDS; shard++) {
        List<ChunkEntry> log = new ArrayList<>();
        int length = 5 + random.nextInt(40);
        for (int offset = 0; offset < length; offset++) {
          String key = "k" + shard + "-" + random.nextInt(6);
          // Versions follow the log for the most part only: several jobs may write one.
          long version = 10L * offset + random.nextInt(15);
          log.add(
              random.nextInt(5) == 0
                  ? RegionHarness.delete(shard, offset, key, version)
                  : RegionHarness.upsert(shard, offset, key, version));
        }
        logs.add(log);
      }
      region = open(List.of());
    }

    private RegionHarness open(List<OperatorSubtaskState> states) throws Exception {
      return RegionHarness.open(redis.url(), RegionHarness.settings(true, table), states, 1, 0);
    }

    /** A chunk as a sender may make it: of each key that changed in a range, its newest there. */
    private byte[] chunk() {
      List<ChunkEntry> entries = new ArrayList<>();
      List<Covered> coverage = new ArrayList<>();
      for (int shard = 0; shard < SHARDS; shard++) {
        List<ChunkEntry> log = logs.get(shard);
        int after = random.nextInt(log.size()) - 1;
        int upto = after + 1 + random.nextInt(log.size() - after - 1);
        coverage.add(new Covered(shard, after, upto));
        for (int offset = after + 1; offset <= upto; offset++) {
          ChunkEntry entry = log.get(offset);
          if (newest(shard, entry.change().key(), after, upto) == entry) {
            entries.add(entry);
          }
        }
      }
      boolean isEarly = random.nextInt(6) == 0;
      Purpose purpose =
          isEarly ? Purpose.EARLY : random.nextBoolean() ? Purpose.LIVE : Purpose.CATCH_UP;
      return new ChunkCodec()
          .encode(
              RegionHarness.header(
                  table, purpose, RegionHarness.HERE, isEarly ? List.of() : coverage),
              isEarly ? entries.subList(0, entries.size() / 2) : entries);
    }

    /** The change of a key with the newest version in a range. */
    private ChunkEntry newest(int shard, String key, int after, int upto) {
      ChunkEntry newest = null;
      for (ChunkEntry entry : logs.get(shard).subList(after + 1, upto + 1)) {
        if (entry.change().key().equals(key)
            && (newest == null || entry.change().isNewerThan(newest.change()))) {
          newest = entry;
        }
      }
      return newest;
    }

    void step() throws Exception {
      switch (random.nextInt(10)) {
        case 0 -> restart();
        case 1 -> {
          if (random.nextInt(4) == 0) {
            lose();
          }
        }
        case 2 -> {
          byte[] damaged = chunk();
          damaged[random.nextInt(damaged.length)] ^= (byte) (1 + random.nextInt(255));
          region.receive(random.nextInt(3), damaged);
        }
        case 3 -> {
          if (!sentBefore.isEmpty()) {
            region.receive(
                random.nextInt(3), sentBefore.get(random.nextInt(sentBefore.size())).clone());
          }
        }
        default -> {
          byte[] chunk = chunk();
          sentBefore.add(chunk);
          region.receive(random.nextInt(3), chunk);
        }
      }
      if (random.nextBoolean()) {
        region.awaitReport();
      } else {
        region.run();
      }
      check();
    }

    private void restart() throws Exception {
      OperatorSubtaskState state = region.flink.snapshot(1, 1);
      region.close();
      region = open(List.of(state));
    }

    private void lose() throws Exception {
      long epoch = region.awaitReport().getEpoch();
      inspector.close();
      redis.kill();
      redis.restart();
      inspector = redis.inspect();
      region.await("the loss is noticed", () -> region.last().getEpoch() > epoch);
    }

    /** What the last report claims is in the store, which holds more since, and never less. */
    void check() {
      if (region.reports().isEmpty()) {
        return;
      }
      RegionReport report = region.last();
      for (int shard = 0; shard < SHARDS; shard++) {
        OffsetRanges known = RegionHarness.known(report, shard);
        for (ChunkEntry entry : logs.get(shard)) {
          if (known.contains(entry.offset() - 1, entry.offset())) {
            claims++;
            assertIsIn(entry.change());
          }
        }
      }
    }

    private void assertIsIn(KeyChange change) {
      byte[] value = inspector.commands().get(StoreLayout.key("", table, change.key()));
      assertThat(value).as("%s is claimed", change.key()).isNotNull();
      Version stored = StoreLayout.decode(value).version();
      assertThat(stored.compareTo(change.version())).as("%s", change).isGreaterThanOrEqualTo(0);
    }

    /** In the end a chunk of all makes everything known. */
    void end() throws Exception {
      for (int shard = 0; shard < SHARDS; shard++) {
        List<ChunkEntry> log = logs.get(shard);
        Covered all = new Covered(shard, -1, log.size() - 1);
        region.receive(
            0,
            new ChunkCodec()
                .encode(
                    RegionHarness.header(table, Purpose.LIVE, RegionHarness.HERE, List.of(all)),
                    log));
      }
      region.await(
          "all is known",
          () -> {
            RegionReport report = region.awaitReport();
            return RegionHarness.known(report, 0).contains(-1, logs.get(0).size() - 1)
                && RegionHarness.known(report, 1).contains(-1, logs.get(1).size() - 1);
          });
      check();
      assertThat(claims).isPositive();
      region.close();
    }
  }

  @Property(tries = 20, shrinking = ShrinkingMode.OFF)
  void aRegionClaimsNoMoreThanItHas(@ForAll long seed) throws Exception {
    World world = new World(seed);
    for (int i = 0; i < STEPS; i++) {
      world.step();
    }
    world.end();
  }
}
