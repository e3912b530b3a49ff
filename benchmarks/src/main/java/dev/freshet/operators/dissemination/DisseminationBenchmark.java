package dev.freshet.operators.dissemination;

import dev.freshet.connectors.chunk.KeyChange;
import dev.freshet.connectors.chunk.OffsetRanges;
import dev.freshet.connectors.link.Transport;
import dev.freshet.connectors.record.Version;
import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;
import org.apache.flink.util.clock.SystemClock;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OperationsPerInvocation;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;

/**
 * Home's part of dissemination without Kafka and Flink: changes into the backlogs of links, chunks out
 * of them, acknowledged at once. Keys are drawn uniformly; every change is as late as the SLO allows.
 */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Fork(value = 1, jvmArgs = "-Xmx4g")
public class DisseminationBenchmark implements Transport, ChangeHistory {

  private static final int CHANGES = 1_000;
  private static final int SHARDS = 4;
  private static final int KEYS = 100_000;
  private static final int VALUE_BYTES = 128;

  /** Next hops of home. */
  @Param({"1", "3"})
  public int links;

  /** Of the table, ms; what is not due waits for company, and for newer values. */
  @Param({"50", "5000"})
  public long sloMs;

  private final ArrayDeque<Runnable> answers = new ArrayDeque<>();
  private final long[] offsets = new long[SHARDS];
  private final String[] keys = new String[KEYS];
  private final SplittableRandom random = new SplittableRandom(1);
  private Dissemination dissemination;
  private DisseminatedTable table;
  private long version;

  /** Puts a star in force. */
  @Setup(Level.Trial)
  public void setUp() {
    MulticastSettings settings =
        new MulticastSettings(
            "c:home",
            List.of(new MulticastSettings.Table("t", "changes.t", "log", SHARDS, sloMs, 1)),
            SHARDS,
            0.01,
            1_000,
            2_000,
            64 << 20);
    dissemination =
        new Dissemination(
            settings, this, this, (what, work) -> answers.add(work), SystemClock.getInstance());
    table = dissemination.table("t");
    List<List<String>> edges = new ArrayList<>();
    List<String> destinations = new ArrayList<>();
    for (int link = 0; link < links; link++) {
      destinations.add("c:" + link);
      edges.add(List.of("c:home", "c:" + link));
    }
    dissemination.plan(
        new MulticastPlan(
            "t",
            1,
            "c:home",
            destinations,
            List.of(new MulticastPlan.Stripe(1, edges)),
            List.of()));
    for (int key = 0; key < KEYS; key++) {
      keys[key] = "machine-" + key;
    }
  }

  /** One change. */
  @Benchmark
  @OperationsPerInvocation(CHANGES)
  public void change() {
    long now = System.currentTimeMillis();
    for (int i = 0; i < CHANGES; i++) {
      String key = keys[random.nextInt(KEYS)];
      int shard = (key.hashCode() & Integer.MAX_VALUE) % SHARDS;
      byte[] value = new byte[VALUE_BYTES];
      ByteBuffer.wrap(value).putLong(0, random.nextLong());
      dissemination.change(
          table,
          shard,
          offsets[shard]++,
          new KeyChange(key, new Version(++version, 1), now, now, 1, false, 0.5f, value));
    }
    dissemination.pump();
    while (!answers.isEmpty()) {
      answers.removeFirst().run();
    }
  }

  @Override
  public void send(String region, String tableName, int lane, byte[] chunk, Callback callback) {
    callback.done(null);
  }

  @Override
  public Map<Integer, Long> ends(MulticastSettings.Table of) {
    return Map.of();
  }

  @Override
  public void read(MulticastSettings.Table of, int shard, OffsetRanges ranges, Reader reader) {
    throw new IllegalStateException("nothing is to be read again");
  }

  @Override
  public void close() {}
}
