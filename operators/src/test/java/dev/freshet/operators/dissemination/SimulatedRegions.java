package dev.freshet.operators.dissemination;

import dev.freshet.connectors.chunk.Chunk;
import dev.freshet.connectors.chunk.ChunkCodec;
import dev.freshet.connectors.chunk.ChunkEntry;
import dev.freshet.connectors.chunk.Covered;
import dev.freshet.connectors.chunk.DamagedChunkException;
import dev.freshet.connectors.chunk.KeyChange;
import dev.freshet.connectors.chunk.OffsetRanges;
import dev.freshet.connectors.chunk.Route;
import dev.freshet.connectors.link.Transport;
import dev.freshet.connectors.record.Version;
import dev.freshet.schemas.RegionReport;
import dev.freshet.schemas.ShardKnowledge;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.flink.metrics.groups.UnregisteredMetricsGroup;
import org.apache.flink.util.clock.ManualClock;

/**
 * Home's multicast logic with a log, a network and regions that a test drives step by step, on one
 * thread and with a clock of its own. Relays pass chunks on as they are.
 */
final class SimulatedRegions implements Transport, ChangeHistory {

  static final String TABLE = "t";
  static final String LOG = "log-1";
  static final String HOME = "c:home";

  /** A chunk on its way. */
  record Sent(String region, byte[] chunk, Callback callback) {}

  /** A region's store, and what it believes to have. */
  static final class Region {
    final Map<String, KeyChange> store = new HashMap<>();
    final Map<Integer, OffsetRanges> known = new HashMap<>();
    long epoch = 1;
  }

  final ManualClock clock = new ManualClock();
  final Deque<Sent> network = new ArrayDeque<>();
  final Map<String, Region> regions = new TreeMap<>();
  final List<TreeMap<Long, KeyChange>> log = new ArrayList<>();
  final MulticastSettings settings;
  private final ChunkCodec codec = new ChunkCodec();
  private final Deque<Runnable> task = new ArrayDeque<>();
  private long planNumber;
  private long lastVersion;
  Dissemination home;

  SimulatedRegions(int shards, List<String> names, long sloMs, long cacheBytes) {
    clock.advanceTime(Duration.ofDays(1));
    settings =
        new MulticastSettings(
            HOME,
            List.of(new MulticastSettings.Table(TABLE, "changes.t", LOG, shards, sloMs, 1)),
            2,
            0.1,
            1_000,
            2_000,
            cacheBytes);
    names.forEach(name -> regions.put(name, new Region()));
    for (int shard = 0; shard < shards; shard++) {
      log.add(new TreeMap<>());
    }
    home = newHome();
  }

  private Dissemination newHome() {
    return new Dissemination(
        settings,
        this,
        this,
        (what, work) -> task.add(work),
        clock,
        new MulticastMetrics(new UnregisteredMetricsGroup(), clock));
  }

  void runTask() {
    while (!task.isEmpty()) {
      task.removeFirst().run();
    }
    home.pump();
  }

  void elapse(long ms) {
    clock.advanceTime(Duration.ofMillis(ms));
    runTask();
  }

  // Home.

  /** A new change of a key in the log, which home reads. */
  void change(String key, double regret, boolean isDelete) {
    int shard = Math.floorMod(key.hashCode(), log.size());
    TreeMap<Long, KeyChange> records = log.get(shard);
    long offset = records.isEmpty() ? 0 : records.lastKey() + 1;
    long version = ++lastVersion;
    KeyChange change =
        new KeyChange(
            key,
            new Version(version, 1),
            clock.absoluteTimeMillis(),
            clock.absoluteTimeMillis(),
            isDelete ? KeyChange.DELETE : 0,
            false,
            (float) regret,
            isDelete ? new byte[0] : new byte[] {(byte) version, (byte) (version >> 8)});
    records.put(offset, change);
    home.change(home.table(TABLE), shard, offset, change);
  }

  /** Puts trees in force, given as lists of edges. */
  void plan(List<List<List<String>>> trees, List<String> detached) {
    List<MulticastPlan.Stripe> stripes =
        trees.stream().map(edges -> new MulticastPlan.Stripe(1.0 / trees.size(), edges)).toList();
    List<String> reached =
        regions.keySet().stream().filter(region -> !detached.contains(region)).toList();
    home.plan(new MulticastPlan(TABLE, ++planNumber, HOME, reached, stripes, detached));
  }

  /** A home that starts from what the last one had as its state. */
  void restart() {
    Map<Integer, List<byte[]>> state = new HashMap<>();
    for (int shard = 0; shard < log.size(); shard++) {
      state.put(shard, home.unacknowledged(TABLE, shard));
    }
    Dissemination before = home;
    task.clear();
    network.clear();
    home = newHome();
    state.forEach(
        (shard, chunks) -> {
          DisseminatedTable.Shard old = before.table(TABLE).known(shard);
          if (old != null && old.isRead()) {
            home.table(TABLE).shard(shard).restore(old.head());
          }
          chunks.forEach(this::restore);
        });
  }

  private void restore(byte[] bytes) {
    try {
      Chunk chunk = codec.decode(bytes);
      home.restore(chunk.header(), codec.entries(chunk));
    } catch (DamagedChunkException e) {
      throw new AssertionError(e);
    }
  }

  @Override
  public void send(String region, String table, int lane, byte[] chunk, Callback callback) {
    network.add(new Sent(region, chunk, callback));
  }

  @Override
  public Map<Integer, Long> ends(MulticastSettings.Table table) {
    return Map.of();
  }

  @Override
  public void read(MulticastSettings.Table table, int shard, OffsetRanges ranges, Reader reader) {
    List<ChunkEntry> entries = new ArrayList<>();
    log.get(shard)
        .forEach(
            (offset, change) -> {
              if (ranges.contains(offset - 1, offset)) {
                entries.add(new ChunkEntry(shard, offset, change));
              }
            });
    ChangeBatches.forEach(shard, entries, ranges, reader::read);
    reader.done(null);
  }

  @Override
  public void close() {}

  // The network.

  /** The oldest chunk arrives, and is acknowledged. */
  void deliver() {
    Sent sent = network.pollFirst();
    if (sent != null) {
      arrive(sent.chunk());
      sent.callback().done(null);
      runTask();
    }
  }

  /** The oldest chunk arrives, but its acknowledgement does not. */
  void deliverUnacknowledged() {
    Sent sent = network.pollFirst();
    if (sent != null) {
      arrive(sent.chunk());
      fail(sent);
    }
  }

  /** The oldest chunk is acknowledged, and lost behind that: damaged, or with a relay. */
  void lose() {
    Sent sent = network.pollFirst();
    if (sent != null) {
      sent.callback().done(null);
      runTask();
    }
  }

  /** The oldest chunk is not acknowledged. */
  void failOldest() {
    Sent sent = network.pollFirst();
    if (sent != null) {
      fail(sent);
    }
  }

  private void fail(Sent sent) {
    sent.callback().done(new IllegalStateException("no answer of " + sent.region()));
    runTask();
  }

  /** The oldest chunk falls behind all others. */
  void delay() {
    if (!network.isEmpty()) {
      network.addLast(network.removeFirst());
    }
  }

  private void arrive(byte[] bytes) {
    try {
      Chunk chunk = codec.decode(bytes);
      arrive(chunk.header().route(), codec.entries(chunk), chunk.header().coverage());
    } catch (DamagedChunkException e) {
      throw new AssertionError(e);
    }
  }

  private void arrive(Route route, List<ChunkEntry> entries, List<Covered> coverage) {
    if (route.applies()) {
      Region region = regions.get(route.region());
      for (ChunkEntry entry : entries) {
        region.store.merge(
            entry.change().key(),
            entry.change(),
            (old, next) -> next.isNewerThan(old) ? next : old);
      }
      for (Covered range : coverage) {
        region
            .known
            .computeIfAbsent(range.shard(), key -> new OffsetRanges())
            .add(range.after(), range.upto());
      }
    }
    route.children().forEach(child -> arrive(child, entries, coverage));
  }

  // Regions.

  /** A region loses its store. */
  void empty(String name) {
    Region region = regions.get(name);
    region.store.clear();
    region.known.clear();
    region.epoch++;
  }

  /** A region tells home what it knows. */
  void report(String name) {
    Region region = regions.get(name);
    List<ShardKnowledge> knowledge = new ArrayList<>();
    region.known.forEach(
        (shard, ranges) -> knowledge.add(new ShardKnowledge(LOG, shard, ranges.toList())));
    home.report(
        RegionReport.newBuilder()
            .setRegion(name)
            .setTable(TABLE)
            .setSubtask(0)
            .setParallelism(1)
            .setReportedAtMicros(clock.absoluteTimeMillis() * 1_000)
            .setEpoch(region.epoch)
            .setKnowledge(knowledge)
            .build());
    runTask();
  }

  /** Everything arrives, and regions report, until nothing moves any more. */
  void settle() {
    for (int round = 0; round < 40; round++) {
      elapse(6_000);
      while (!network.isEmpty()) {
        deliver();
      }
      regions.keySet().forEach(this::report);
    }
  }

  /** The newest change of each key. */
  Map<String, KeyChange> reference() {
    Map<String, KeyChange> newest = new HashMap<>();
    log.forEach(records -> records.values().forEach(change -> newest.put(change.key(), change)));
    return newest;
  }
}
