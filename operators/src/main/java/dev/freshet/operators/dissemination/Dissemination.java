package dev.freshet.operators.dissemination;

import dev.freshet.connectors.chunk.ChunkCodec;
import dev.freshet.connectors.chunk.ChunkEntry;
import dev.freshet.connectors.chunk.ChunkHeader;
import dev.freshet.connectors.chunk.Covered;
import dev.freshet.connectors.chunk.KeyChange;
import dev.freshet.connectors.chunk.OffsetRanges;
import dev.freshet.connectors.chunk.Route;
import dev.freshet.connectors.link.Transport;
import dev.freshet.schemas.LinkReport;
import dev.freshet.schemas.Purpose;
import dev.freshet.schemas.RegionReport;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.flink.util.clock.Clock;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Takes changes to the regions of their table: what one subtask of the multicast job does, apart
 * from Flink. See {@code docs/multicast.md}. It belongs to the task's thread.
 */
final class Dissemination implements Link.Listener {

  private static final Logger LOG = LoggerFactory.getLogger(Dissemination.class);

  private static final long MICROS_PER_MS = 1_000;

  /** This part of the SLO is always for filling chunks. */
  private static final long FILLING_SHARE = 4;

  /** A relay that has not reported for so long is not trusted with what a region has missed. */
  private static final long RELAY_SILENT_MS = 5_000;

  private final MulticastSettings settings;

  private final Transport transport;
  private final ChangeHistory history;
  private final Link.TaskThread task;
  private final Clock clock;
  private final ChunkCodec codec = new ChunkCodec();
  private final Map<String, DisseminatedTable> tables = new LinkedHashMap<>();
  private final Map<String, Link> links = new LinkedHashMap<>();
  private final Map<String, RemoteRegion> regions = new HashMap<>();
  private long nextChunkId;

  Dissemination(
      MulticastSettings settings,
      Transport transport,
      ChangeHistory history,
      Link.TaskThread task,
      Clock clock) {
    this.settings = settings;
    this.transport = transport;
    this.history = history;
    this.task = task;
    this.clock = clock;
    // Larger than those of an earlier run, without state of its own.
    this.nextChunkId = clock.absoluteTimeMillis() * MICROS_PER_MS;
    PriorityQuantile quantile = new PriorityQuantile(settings.earlyShare());
    for (MulticastSettings.Table table : settings.tables()) {
      tables.put(
          table.table(),
          new DisseminatedTable(
              table, quantile, settings.cacheBytes() / settings.tables().size() / table.shards()));
    }
  }

  Collection<Link> links() {
    return links.values();
  }

  Collection<DisseminatedTable> tables() {
    return tables.values();
  }

  DisseminatedTable table(String name) {
    return tables.get(name);
  }

  // Changes.

  /** A change came in: the next record of its shard. */
  void change(DisseminatedTable table, int shard, long offset, KeyChange change) {
    long due = change.computedAtMs() + table.settings().sloMs();
    DisseminatedTable.Shard state = table.shard(shard);
    long after = state.advance(offset);
    state.recent().add(change, offset);
    table.count(change);
    for (DisseminatedTable.Target target : state.targets()) {
      target.lane().put(shard, change, offset, due);
      target.lane().received(shard, after, offset, due);
      if (target.lane().bytes() >= target.link().window().chunkBytesMax()) {
        target.link().pump();
      }
    }
  }

  /** A record of a shard that carries no change. */
  void skip(DisseminatedTable table, int shard, long offset) {
    long due = clock.absoluteTimeMillis() + table.settings().sloMs();
    DisseminatedTable.Shard state = table.shard(shard);
    long after = state.advance(offset);
    for (DisseminatedTable.Target target : state.targets()) {
      target.lane().received(shard, after, offset, due);
    }
  }

  /**
   * Sends what is due.
   *
   * @return when to call again at the latest, ms
   */
  long pump() {
    long next = Long.MAX_VALUE;
    for (Link link : links.values()) {
      next = Math.min(next, link.pump());
    }
    return next;
  }

  /** When the next chunk must leave, ms; {@link Long#MAX_VALUE} if none waits. */
  long nextLeaveMs() {
    long next = Long.MAX_VALUE;
    for (Link link : links.values()) {
      next = Math.min(next, link.nextLeaveMs());
    }
    return next;
  }

  /** What each link has delivered and holds. */
  List<LinkReport> linkReports() {
    return links.values().stream().map(link -> link.report()).toList();
  }

  // Plans.

  /**
   * Puts a plan in force. What waits on the ways of the one before moves over.
   *
   * @return whether it is in force: not if it is older than another, empty, or of no table here
   * @throws IllegalArgumentException if its stripes are no trees
   */
  boolean plan(MulticastPlan plan) {
    DisseminatedTable table = tables.get(plan.table());
    if (table == null || plan.stripes().isEmpty() || plan.number() <= table.planNumber()) {
      return false;
    }
    table.plan(plan);
    for (DisseminatedTable.Shard shard : table.shards()) {
      retarget(table, shard);
    }
    for (Link link : List.copyOf(links.values())) {
      for (Lane lane : List.copyOf(link.lanes())) {
        if (isOutdated(lane, table)) {
          link.removeLanes(other -> other == lane);
          ChunkDraft all = ChunkDraft.unbounded();
          lane.shards().forEach(shard -> shard.copyTo(all));
          place(lane.id(), all.entries(), all.coverage(), all.dueMs());
        }
      }
    }
    predict();
    return true;
  }

  private static boolean isOutdated(Lane lane, DisseminatedTable table) {
    return lane.id().table().equals(table.settings().table())
        && lane.id().plan() != table.planNumber();
  }

  private void retarget(DisseminatedTable table, DisseminatedTable.Shard shard) {
    List<DisseminatedTable.Target> targets = new ArrayList<>();
    for (Route route : table.routes(shard.number())) {
      targets.add(target(table, shard.number(), route, false));
    }
    shard.target(targets);
  }

  private DisseminatedTable.Target target(
      DisseminatedTable table, int shard, Route route, boolean isCatchUp) {
    Link link = link(route.region());
    LaneId id =
        new LaneId(
            table.settings().table(),
            isCatchUp,
            table.planNumber(),
            table.stripe(shard),
            route,
            shard % settings.lanes());
    Lane lane = link.lane(id, table.priorities());
    lane.predict(predictedMs(lane));
    return new DisseminatedTable.Target(link, lane);
  }

  private Link link(String region) {
    return links.computeIfAbsent(
        region, key -> new Link(key, transport, this::encode, task, clock, this));
  }

  /** Gives what was on one lane to those that now lead to the same destinations. */
  private void place(LaneId from, List<ChunkEntry> entries, List<Covered> coverage, long dueMs) {
    DisseminatedTable table = tables.get(from.table());
    if (table == null || table.planNumber() == 0) {
      return;
    }
    long due = dueMs == Long.MAX_VALUE ? clock.absoluteTimeMillis() : dueMs;
    Set<String> destinations = from.route().destinations();
    for (ChunkEntry entry : entries) {
      for (Lane lane : lanesTo(table, entry.shard(), destinations, from.isCatchUp())) {
        lane.put(entry.shard(), entry.change(), entry.offset(), due);
      }
    }
    for (Covered range : coverage) {
      for (Lane lane : lanesTo(table, range.shard(), destinations, from.isCatchUp())) {
        lane.received(range.shard(), range.after(), range.upto(), due);
      }
    }
  }

  private List<Lane> lanesTo(
      DisseminatedTable table, int shard, Set<String> destinations, boolean isCatchUp) {
    List<Lane> lanes = new ArrayList<>();
    for (Route route : table.routesTo(shard, destinations)) {
      lanes.add(target(table, shard, route, isCatchUp).lane());
    }
    return lanes;
  }

  // Chunks.

  private Link.Encoded encode(LaneId lane, Purpose purpose, ChunkDraft draft) {
    Map<String, Long> clocksAhead = new HashMap<>();
    for (String region : lane.route().destinations()) {
      RemoteRegion remote = regions.get(region);
      if (remote != null && remote.clock().isKnown()) {
        clocksAhead.put(region, remote.clock().aheadMicros());
      }
    }
    ChunkHeader header =
        new ChunkHeader(
            nextChunkId++,
            settings.home(),
            lane.table(),
            tables.get(lane.table()).settings().log(),
            purpose,
            lane.plan(),
            lane.stripe(),
            lane.route(),
            clocksAhead,
            purpose == Purpose.EARLY ? List.of() : draft.coverage(),
            clock.absoluteTimeMillis() * MICROS_PER_MS,
            draft.dueMs());
    return new Link.Encoded(codec.encode(header, draft.entries()), draft.bytes());
  }

  @Override
  public void acknowledged(Link link, SentChunk chunk) {
    link.pump();
  }

  @Override
  public void failed(Link link, SentChunk chunk) {
    if (chunk.purpose() != Purpose.EARLY) {
      place(chunk.lane(), chunk.entries(), chunk.coverage(), chunk.dueMs());
    }
    link.pump();
  }

  // Reports and catch-up.

  /** A region has reported. */
  void report(RegionReport report) {
    RemoteRegion region = regions.computeIfAbsent(report.getRegion(), RemoteRegion::new);
    region.report(report, clock.absoluteTimeMillis() * MICROS_PER_MS);
    DisseminatedTable table = tables.get(report.getTable());
    if (table == null || table.planNumber() == 0 || !report.getApplies()) {
      return;
    }
    predict();
    if (table.reaches(region.name())) {
      for (DisseminatedTable.Shard shard : table.shards()) {
        catchUp(region, table, shard);
      }
    }
  }

  private void predict() {
    for (Link link : links.values()) {
      link.lanes().forEach(lane -> lane.predict(predictedMs(lane)));
      link.removeLanes(lane -> lane.id().isCatchUp() && lane.isEmpty());
    }
  }

  private long predictedMs(Lane lane) {
    long longest = 0;
    for (String destination : lane.destinations()) {
      RemoteRegion region = regions.get(destination);
      longest = Math.max(longest, region == null ? 0 : region.predictedDelayMs());
    }
    // Where the way takes the whole SLO, chunks that hardly fill would make it no faster.
    long sloMs = tables.get(lane.id().table()).settings().sloMs();
    return Math.min(longest, sloMs - sloMs / FILLING_SHARE);
  }

  private void catchUp(
      RemoteRegion region, DisseminatedTable table, DisseminatedTable.Shard shard) {
    String name = table.settings().table();
    OffsetRanges known = region.known(name, table.settings().log(), shard.number());
    if (known.contains(-1, shard.head())) {
      return;
    }
    OffsetRanges lacking = OffsetRanges.of(-1, shard.head());
    lacking.removeAll(known);
    lacking.removeAll(region.fetching(name, shard.number()));
    removeUnderWay(lacking, region.name(), name, shard.number());
    MissingRanges missing = region.missing(name, shard.number());
    long nowMs = clock.absoluteTimeMillis();
    if (missing.isFilling(lacking, known)) {
      region.gapFilled(name, nowMs);
    }
    if (isHeldBack(region.name(), table, shard.number())) {
      missing.reset();
      return;
    }
    long patienceMs = settings.catchUpAfterMs();
    boolean mayArrive = nowMs - region.gapFilledAtMs(name) < patienceMs;
    OffsetRanges lost = missing.lost(lacking, known, mayArrive, nowMs, patienceMs);
    if (!lost.isEmpty()) {
      fetch(region, table, shard, lost);
    }
  }

  /** Takes out what is in this subtask's backlogs for a region, or sent and not acknowledged. */
  private void removeUnderWay(OffsetRanges lacking, String region, String table, int shard) {
    for (Link link : links.values()) {
      for (Lane lane : link.lanes()) {
        if (lane.id().table().equals(table) && lane.destinations().contains(region)) {
          lane.uncovered(shard).ifPresent(lacking::removeAll);
        }
      }
      for (SentChunk chunk : link.inFlight()) {
        if (chunk.lane().table().equals(table)
            && chunk.lane().route().destinations().contains(region)) {
          chunk.coverage().stream()
              .filter(range -> range.shard() == shard)
              .forEach(range -> lacking.remove(range.after(), range.upto()));
        }
      }
    }
  }

  /** Whether a relay that answers has a backlog on the way to a region. */
  private boolean isHeldBack(String region, DisseminatedTable table, int shard) {
    for (Route route : table.routesTo(shard, Set.of(region))) {
      for (Route hop = route; !hop.children().isEmpty(); hop = hop.children().get(0)) {
        RemoteRegion relay = regions.get(hop.region());
        if (relay != null && isHeard(relay) && relay.holdsBackFor(hop.children().get(0).region())) {
          return true;
        }
      }
    }
    return false;
  }

  private boolean isHeard(RemoteRegion region) {
    return clock.absoluteTimeMillis() - region.heardAtMs() < RELAY_SILENT_MS;
  }

  private void fetch(
      RemoteRegion region,
      DisseminatedTable table,
      DisseminatedTable.Shard shard,
      OffsetRanges lost) {
    LOG.info(
        "Region {} lacks {} of shard {} of table {}: sending it again",
        region.name(),
        lost,
        shard.number(),
        table.settings().table());
    region.missing(table.settings().table(), shard.number()).reset();
    OffsetRanges fetching = region.fetching(table.settings().table(), shard.number());
    fetching.addAll(lost);
    Fetch fetch = new Fetch(region, table, fetching, lost);
    if (shard.recent().reachesBackTo(lost)) {
      ChangeBatches.forEach(shard.number(), shard.recent().in(lost), lost, fetch::read);
      fetch.done(null);
    } else {
      history.read(table.settings(), shard.number(), lost, fetch);
    }
  }

  /** What a region has missed, on its way from the cache or the log to the backlogs. */
  private final class Fetch implements ChangeHistory.Reader {
    private final RemoteRegion region;
    private final DisseminatedTable table;
    private final OffsetRanges fetching;
    private final OffsetRanges lost;

    Fetch(RemoteRegion region, DisseminatedTable table, OffsetRanges fetching, OffsetRanges lost) {
      this.region = region;
      this.table = table;
      this.fetching = fetching;
      this.lost = lost;
    }

    @Override
    public void read(List<ChunkEntry> entries, List<Covered> coverage) {
      task.run(
          "catch up " + region.name(),
          () -> {
            send(region, table, entries, coverage);
            coverage.forEach(range -> fetching.remove(range.after(), range.upto()));
          });
    }

    @Override
    public void done(Exception failure) {
      task.run("end catching up " + region.name(), () -> fetching.removeAll(lost));
      if (failure != null) {
        LOG.warn("Cannot read what region {} lacks; trying again", region.name(), failure);
      }
    }
  }

  /** Sends a region what it lacks, past relays that do not answer. */
  private void send(
      RemoteRegion region,
      DisseminatedTable table,
      List<ChunkEntry> entries,
      List<Covered> coverage) {
    Optional<Integer> shard = coverage.stream().map(Covered::shard).findFirst();
    if (shard.isEmpty()) {
      return;
    }
    long now = clock.absoluteTimeMillis();
    for (Route route : wayTo(region.name(), table, shard.get())) {
      DisseminatedTable.Target target = target(table, shard.get(), route, true);
      target.lane().putAll(entries, coverage, now);
      target.link().pump();
    }
  }

  private List<Route> wayTo(String region, DisseminatedTable table, int shard) {
    List<Route> routes = table.routesTo(shard, Set.of(region));
    for (Route route : routes) {
      for (Route hop = route; !hop.children().isEmpty(); hop = hop.children().get(0)) {
        RemoteRegion relay = regions.get(hop.region());
        if (relay == null || !isHeard(relay)) {
          return List.of(Route.direct(region));
        }
      }
    }
    return routes;
  }

  // State.

  /** Everything of a shard that is not acknowledged by next hops, as chunks. */
  List<byte[]> unacknowledged(String table, int shard) {
    List<byte[]> chunks = new ArrayList<>();
    for (Link link : links.values()) {
      for (Lane lane : link.lanes()) {
        if (lane.id().table().equals(table)) {
          lane.backlog(shard)
              .ifPresent(
                  backlog -> {
                    ChunkDraft all = ChunkDraft.unbounded();
                    backlog.copyTo(all);
                    chunks.addAll(StateChunks.of(lane.id(), all, this::encode));
                  });
        }
      }
      for (SentChunk chunk : link.inFlight()) {
        if (chunk.lane().table().equals(table) && chunk.purpose() != Purpose.EARLY) {
          chunks.addAll(StateChunks.of(chunk.lane(), partOf(chunk, shard), this::encode));
        }
      }
    }
    return chunks;
  }

  private static ChunkDraft partOf(SentChunk chunk, int shard) {
    ChunkDraft draft = ChunkDraft.unbounded();
    chunk.entries().stream()
        .filter(entry -> entry.shard() == shard)
        .forEach(entry -> draft.add(entry, 0, chunk.dueMs()));
    OffsetRanges ranges = new OffsetRanges();
    chunk.coverage().stream()
        .filter(range -> range.shard() == shard)
        .forEach(range -> ranges.add(range.after(), range.upto()));
    draft.cover(shard, ranges);
    return draft;
  }

  /** Goes on from what a link of an earlier run has counted. */
  void restoreCounters(LinkReport counted) {
    link(counted.getTo()).counters().restore(counted);
  }

  /** Takes back a part of what {@link #unacknowledged} gave. */
  void restore(ChunkHeader header, List<ChunkEntry> entries) {
    DisseminatedTable table = tables.get(header.table());
    if (table == null || !table.settings().log().equals(header.log())) {
      return;
    }
    int shard = entries.isEmpty() ? header.coverage().get(0).shard() : entries.get(0).shard();
    LaneId id =
        new LaneId(
            header.table(),
            header.purpose() == Purpose.CATCH_UP,
            header.plan(),
            header.stripe(),
            header.route(),
            shard % settings.lanes());
    link(header.route().region())
        .lane(id, table.priorities())
        .putAll(entries, header.coverage(), header.deadlineMs());
  }
}
