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
  private static final long FILLING_SHARE = 8;

  /**
   * What takes so many times as long as the slowest recent delivery is still in time: the next
   * pause of a machine or a network may be a longer one.
   */
  private static final long HEADROOM = 4;

  /** What leaves before it is due takes at most this part of the SLO on the link. */
  private static final long FULL_SHARE = 8;

  /** A relay that has not reported for so long is not trusted with what a region has missed. */
  private static final long RELAY_SILENT_MS = 5_000;

  /** A relay that has a backlog is trusted with what a region lacks for so long. */
  private static final long RELAY_TRUST_MS = 300_000;

  /**
   * So much of what a region has missed waits for its links, in state; the rest of what was read
   * waits beside it, and is read again after a failure. Much more than a link takes before the next
   * acknowledgement would only make checkpoints slow, and live changes with them.
   */
  static final long CATCH_UP_AHEAD_BYTES = 2 << 20;

  private final MulticastSettings settings;

  private final Transport transport;
  private final ChangeHistory history;
  private final Link.TaskThread task;
  private final Clock clock;
  private final MulticastMetrics metrics;
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
      Clock clock,
      MulticastMetrics metrics) {
    this.settings = settings;
    this.transport = transport;
    this.history = history;
    this.task = task;
    this.clock = clock;
    this.metrics = metrics;
    // Larger than those of an earlier run, without state of its own.
    this.nextChunkId = clock.absoluteTimeMillis() * MICROS_PER_MS;
    PriorityQuantile quantile = new PriorityQuantile(settings.earlyShare());
    for (MulticastSettings.Table table : settings.tables()) {
      long cacheBytes = settings.cacheBytes() / settings.tables().size() / table.shards();
      DisseminatedTable disseminated = new DisseminatedTable(table, quantile, cacheBytes);
      tables.put(table.table(), disseminated);
      metrics.table(disseminated);
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

  /**
   * A change came in: the next record of its shard.
   *
   * @return when to pump at the latest for it, ms; {@link Long#MAX_VALUE} if that makes no
   *     difference
   */
  long change(DisseminatedTable table, int shard, long offset, KeyChange change) {
    long due = change.computedAtMs() + table.settings().sloMs();
    DisseminatedTable.Shard state = table.shard(shard);
    long after = state.advance(offset);
    state.recent().add(change, offset);
    table.count(change);
    long next = Long.MAX_VALUE;
    for (DisseminatedTable.Target target : state.targets()) {
      target.lane().put(shard, change, offset, due);
      target.lane().received(shard, after, offset, due);
      if (target.link().isFull(target.lane()) && target.link().window().hasRoom()) {
        target.link().pump();
      }
      next = Math.min(next, target.link().nextLeaveMs(target.lane()));
    }
    return next;
  }

  /** A record of a shard that carries no change; when to pump at the latest for it, ms. */
  long skip(DisseminatedTable table, int shard, long offset) {
    long due = clock.absoluteTimeMillis() + table.settings().sloMs();
    DisseminatedTable.Shard state = table.shard(shard);
    long after = state.advance(offset);
    long next = Long.MAX_VALUE;
    for (DisseminatedTable.Target target : state.targets()) {
      target.lane().received(shard, after, offset, due);
      next = Math.min(next, target.link().nextLeaveMs(target.lane()));
    }
    return next;
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
    predict(lane);
    return new DisseminatedTable.Target(link, lane);
  }

  private Link link(String region) {
    return links.computeIfAbsent(region, this::newLink);
  }

  private Link newLink(String region) {
    Link link = new Link(region, transport, this::encode, task, clock, this);
    metrics.link(link);
    return link;
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
    if (chunk.purpose() == Purpose.CATCH_UP) {
      chunk.lane().route().destinations().forEach(name -> feed(region(name)));
    }
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
    RemoteRegion region = region(report.getRegion());
    region.report(report, clock.absoluteTimeMillis() * MICROS_PER_MS);
    DisseminatedTable table = tables.get(report.getTable());
    if (table == null || table.planNumber() == 0 || !report.getApplies()) {
      return;
    }
    predict();
    feed(region);
    if (table.reaches(region.name())) {
      String name = table.settings().table();
      RegionLag lag = region.lag(name, started -> metrics.region(region.name(), name, started));
      for (DisseminatedTable.Shard shard : table.shards()) {
        OffsetRanges known = region.known(name, table.settings().log(), shard.number());
        lag.reported(shard.number(), known, shard.head(), clock.absoluteTimeMillis());
        catchUp(region, table, shard, known);
      }
    }
  }

  private RemoteRegion region(String name) {
    return regions.computeIfAbsent(name, RemoteRegion::new);
  }

  private void predict() {
    for (Link link : links.values()) {
      link.lanes().forEach(this::predict);
      link.removeLanes(lane -> lane.id().isCatchUp() && lane.isEmpty());
    }
  }

  private void predict(Lane lane) {
    long longest = 0;
    for (String destination : lane.destinations()) {
      RemoteRegion region = regions.get(destination);
      longest = Math.max(longest, region == null ? 0 : region.predictedDelayMs());
    }
    // Where the way takes the whole SLO, chunks that hardly fill would make it no faster.
    long sloMs = tables.get(lane.id().table()).settings().sloMs();
    lane.predict(Math.min(HEADROOM * longest, sloMs - sloMs / FILLING_SHARE), sloMs / FULL_SHARE);
  }

  private void catchUp(
      RemoteRegion region,
      DisseminatedTable table,
      DisseminatedTable.Shard shard,
      OffsetRanges known) {
    String name = table.settings().table();
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
    OffsetRanges lost =
        region
            .missingForLong(name, shard.number())
            .lost(lacking, known, false, nowMs, RELAY_TRUST_MS);
    if (isHeldBack(region.name(), table, shard.number())) {
      missing.reset();
    } else {
      long patienceMs = settings.catchUpAfterMs();
      boolean mayArrive = nowMs - region.gapFilledAtMs(name) < patienceMs;
      lost.addAll(missing.lost(lacking, known, mayArrive, nowMs, patienceMs));
    }
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
    region.missingForLong(table.settings().table(), shard.number()).reset();
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
      goOn(
          () -> {
            send(region, table, entries, coverage);
            coverage.forEach(range -> fetching.remove(range.after(), range.upto()));
          });
    }

    private void goOn(Runnable step) {
      task.run(
          "catch up " + region.name(),
          () -> {
            region.fetched().add(step);
            feed(region);
          });
    }

    @Override
    public void done(Exception failure) {
      goOn(() -> fetching.removeAll(lost));
      if (failure != null) {
        LOG.warn("Cannot read what region {} lacks; trying again", region.name(), failure);
      }
    }
  }

  /** Gives links what was read for a region, as they take it. */
  private void feed(RemoteRegion region) {
    while (!region.fetched().isEmpty() && catchUpBytes(region.name()) < CATCH_UP_AHEAD_BYTES) {
      region.fetched().remove().run();
    }
  }

  /** Size of what waits for the links to a region and is no live change. */
  private long catchUpBytes(String region) {
    long bytes = 0;
    for (Link link : links.values()) {
      for (Lane lane : link.lanes()) {
        if (lane.id().isCatchUp() && lane.destinations().contains(region)) {
          bytes += lane.bytes();
        }
      }
    }
    return bytes;
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
