package dev.freshet.operators.dissemination;

import dev.freshet.connectors.chunk.ChunkCodec;
import dev.freshet.connectors.chunk.ChunkEntry;
import dev.freshet.connectors.chunk.ChunkHeader;
import dev.freshet.connectors.chunk.Covered;
import dev.freshet.connectors.chunk.DamagedChunkException;
import dev.freshet.connectors.chunk.Route;
import dev.freshet.connectors.link.Transport;
import dev.freshet.connectors.metrics.MetricNames;
import dev.freshet.schemas.LinkReport;
import dev.freshet.schemas.Purpose;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.flink.metrics.Counter;
import org.apache.flink.metrics.MetricGroup;
import org.apache.flink.util.clock.Clock;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Sends chunks on to the next hops of their route (see {@code docs/multicast.md}, "Relays"). It
 * belongs to the task's thread.
 *
 * <p>A chunk goes on as it is where its link is not behind, and is kept until it is acknowledged.
 * Otherwise, or if it failed, it is taken apart into the link's lanes, whose chunks are made here.
 */
final class Relay implements Link.Listener {

  private static final Logger LOG = LoggerFactory.getLogger(Relay.class);

  private static final long MICROS_PER_MS = 1_000;

  /**
   * Changes come coalesced, but hardly the significant ones: these are a larger share of the rest.
   */
  private static final double COALESCED = 2;

  /** One next hop. */
  private static final class Peer {
    final Link link;
    final Counter dropped;

    /** When it last acknowledged something, or nothing waited for it. */
    long heardAtMs;

    Peer(Link link, Counter dropped, long nowMs) {
      this.link = link;
      this.dropped = dropped;
      this.heardAtMs = nowMs;
    }

    boolean isIdle() {
      return link.inFlight().isEmpty() && link.lanes().stream().allMatch(Lane::isEmpty);
    }
  }

  /** What the chunks of a lane say of themselves, from those that it took in. */
  private static final class Absorbed {
    String log;
    Map<String, Long> clocksAhead = Map.of();
    long sentAtMicros = Long.MIN_VALUE;

    /** The least time that one had left when it came in, ms; negative if it was late. */
    long leftMs = Long.MAX_VALUE;

    void add(ChunkHeader header, long nowMs) {
      log = header.log();
      clocksAhead = header.clocksAhead();
      sentAtMicros = Math.max(sentAtMicros, header.sentAtMicros());
      leftMs = Math.min(leftMs, header.deadlineMs() - nowMs);
    }
  }

  private final RegionSettings settings;
  private final Transport transport;
  private final Link.TaskThread task;
  private final Clock clock;
  private final MetricGroup metrics;
  private final ChunkCodec codec = new ChunkCodec();
  private final Map<String, Peer> peers = new LinkedHashMap<>();
  private final Map<LaneId, Absorbed> absorbed = new HashMap<>();
  private final PriorityQuantile quantile;
  private final Map<String, Priorities> priorities = new HashMap<>();

  /** The log that the chunks of each table are of. */
  private final Map<String, String> logs = new HashMap<>();

  /** Chunks under way that were passed on, as they are on the wire. */
  private final Map<SentChunk, byte[]> passedOn = new IdentityHashMap<>();

  /** Chunks under way whose log is no more. */
  private final Set<SentChunk> outdated = Collections.newSetFromMap(new IdentityHashMap<>());

  private long nextChunkId;

  /**
   * @param metrics of ours
   */
  Relay(
      RegionSettings settings,
      Transport transport,
      Link.TaskThread task,
      Clock clock,
      MetricGroup metrics) {
    this.quantile = new PriorityQuantile(Math.min(1, COALESCED * settings.earlyShare()));
    this.settings = settings;
    this.transport = transport;
    this.task = task;
    this.clock = clock;
    this.metrics = metrics;
    // Larger than those of an earlier run, without state of its own.
    this.nextChunkId = clock.absoluteTimeMillis() * MICROS_PER_MS;
  }

  private Peer peer(String region) {
    return peers.computeIfAbsent(region, this::newPeer);
  }

  private Peer newPeer(String region) {
    Link link = new Link(region, transport, this::encode, task, clock, this);
    Counter dropped = LinkMetrics.of(link, metrics).counter(MetricNames.RELAY_KEYS_DROPPED);
    return new Peer(link, dropped, clock.absoluteTimeMillis());
  }

  // Chunks.

  /**
   * Sends a chunk on.
   *
   * @param child where to: one of the children of its route
   * @throws DamagedChunkException if it must be unpacked and cannot be
   */
  void forward(Arrival arrival, Route child) throws DamagedChunkException {
    ChunkHeader header = arrival.header();
    noteLog(header);
    LaneId lane = laneId(header, child, arrival.partition());
    Link link = peer(child.region()).link;
    if (link.isBehind(header.purpose())) {
      absorb(link, lane, header, arrival.entries());
      link.pump();
      return;
    }
    byte[] bytes = codec.forward(arrival.chunk(), child);
    SentChunk sent =
        new SentChunk(
            lane,
            header.purpose(),
            List.of(),
            header.coverage(),
            header.deadlineMs(),
            arrival.chunk().rawBytes(),
            bytes.length,
            clock.relativeTimeNanos());
    passedOn.put(sent, bytes);
    link.send(sent, bytes);
  }

  private static LaneId laneId(ChunkHeader header, Route route, int partition) {
    return new LaneId(
        header.table(),
        header.purpose() == Purpose.CATCH_UP,
        header.plan(),
        header.stripe(),
        route,
        partition);
  }

  /** Offsets of another log mean nothing beside those that wait. */
  private void noteLog(ChunkHeader header) {
    String before = logs.put(header.table(), header.log());
    if (before == null || before.equals(header.log())) {
      return;
    }
    LOG.warn(
        "Table {} has another log than before, {} in place of {}: what waits of that is dropped",
        header.table(),
        header.log(),
        before);
    for (Peer peer : peers.values()) {
      drop(peer, header.table());
      for (SentChunk chunk : peer.link.inFlight()) {
        if (chunk.lane().table().equals(header.table())) {
          outdated.add(chunk);
        }
      }
    }
  }

  private static void drop(Peer peer, String table) {
    for (Lane lane : peer.link.lanes()) {
      if (lane.id().table().equals(table)) {
        peer.dropped.inc(lane.size());
      }
    }
    peer.link.removeLanes(lane -> lane.id().table().equals(table));
  }

  private void absorb(Link link, LaneId id, ChunkHeader header, List<ChunkEntry> entries) {
    Priorities ofTable =
        priorities.computeIfAbsent(header.table(), table -> new Priorities(quantile, 1));
    Lane lane = link.lane(id, ofTable);
    long nowMs = clock.absoluteTimeMillis();
    if (lane.isEmpty()) {
      absorbed.remove(id);
    }
    absorbed.computeIfAbsent(id, key -> new Absorbed()).add(header, nowMs);
    if (header.purpose() == Purpose.LIVE) {
      entries.forEach(entry -> ofTable.observe(entry.change()));
    }
    // Early chunks cover nothing.
    lane.putAll(entries, header.coverage(), nowMs);
  }

  private Link.Encoded encode(LaneId lane, Purpose purpose, ChunkDraft draft) {
    Absorbed from = absorbed.get(lane);
    long dueMs = draft.dueMs() == Long.MAX_VALUE ? clock.absoluteTimeMillis() : draft.dueMs();
    ChunkHeader header =
        new ChunkHeader(
            nextChunkId++,
            settings.region(),
            lane.table(),
            from.log,
            purpose,
            lane.plan(),
            lane.stripe(),
            lane.route(),
            from.clocksAhead,
            purpose == Purpose.EARLY ? List.of() : draft.coverage(),
            from.sentAtMicros,
            // Entries are due here when they come in; the rest is what they had left then.
            dueMs + from.leftMs);
    return new Link.Encoded(codec.encode(header, draft.entries()), draft.bytes());
  }

  @Override
  public void acknowledged(Link link, SentChunk chunk) {
    peer(link.region()).heardAtMs = clock.absoluteTimeMillis();
    passedOn.remove(chunk);
    outdated.remove(chunk);
    link.pump();
  }

  @Override
  public void failed(Link link, SentChunk chunk) {
    byte[] bytes = passedOn.remove(chunk);
    if (!outdated.remove(chunk) && chunk.purpose() != Purpose.EARLY) {
      putBack(link, chunk, bytes);
    }
    link.pump();
  }

  private void putBack(Link link, SentChunk chunk, byte[] bytes) {
    if (bytes == null) {
      long nowMs = clock.absoluteTimeMillis();
      link.lane(chunk.lane(), priorities.get(chunk.lane().table()))
          .putAll(chunk.entries(), chunk.coverage(), nowMs);
      return;
    }
    try {
      Arrival again = new Arrival(chunk.lane().lane(), codec.decode(bytes), 0, codec);
      absorb(link, chunk.lane(), again.header(), again.entries());
    } catch (DamagedChunkException e) {
      // It came so, and the region that it goes to could not have used it either.
      LOG.warn("A chunk for {} is not sent again: {}", link.region(), e.getMessage());
    }
  }

  // Time.

  /**
   * Sends what is due.
   *
   * @return when to call again at the latest, ms
   */
  long pump() {
    long next = Long.MAX_VALUE;
    for (Peer peer : peers.values()) {
      next = Math.min(next, peer.link.pump());
    }
    return next;
  }

  /** When the next chunk must leave, ms; {@link Long#MAX_VALUE} if none waits. */
  long nextLeaveMs() {
    long next = Long.MAX_VALUE;
    for (Peer peer : peers.values()) {
      next = Math.min(next, peer.link.nextLeaveMs());
    }
    return next;
  }

  /** Gives up what waits for links that have been silent for too long; forgets empty lanes. */
  void tidy() {
    long nowMs = clock.absoluteTimeMillis();
    Set<LaneId> needed = new HashSet<>();
    for (Peer peer : peers.values()) {
      if (peer.isIdle()) {
        peer.heardAtMs = nowMs;
      } else if (nowMs - peer.heardAtMs > settings.relayRetentionMs()) {
        giveUp(peer);
      }
      peer.link.removeLanes(Lane::isEmpty);
      peer.link.lanes().forEach(lane -> needed.add(lane.id()));
      peer.link.inFlight().forEach(chunk -> needed.add(chunk.lane()));
    }
    absorbed.keySet().retainAll(needed);
  }

  private void giveUp(Peer peer) {
    long keys = peer.link.backlogKeys();
    if (keys > 0) {
      LOG.warn(
          "Region {} has not answered for {} ms: {} changes for it are dropped, for home to send",
          peer.link.region(),
          settings.relayRetentionMs(),
          keys);
    }
    peer.dropped.inc(keys);
    peer.link.removeLanes(lane -> true);
  }

  // Reports and state.

  /** What each link has delivered and holds. */
  List<LinkReport> reports() {
    return peers.values().stream().map(peer -> peer.link.report()).toList();
  }

  /** Goes on from what a link of an earlier run has counted. */
  void restoreCounters(LinkReport counted) {
    peer(counted.getTo()).link.counters().restore(counted);
  }

  /** Everything from one partition of the inbox that next hops have not acknowledged, as chunks. */
  List<byte[]> unacknowledged(int partition) {
    List<byte[]> chunks = new ArrayList<>();
    for (Peer peer : peers.values()) {
      for (Lane lane : peer.link.lanes()) {
        if (lane.id().lane() == partition) {
          ChunkDraft all = ChunkDraft.unbounded();
          lane.shards().forEach(shard -> shard.copyTo(all));
          chunks.addAll(StateChunks.of(lane.id(), all, this::encode));
        }
      }
      for (SentChunk chunk : peer.link.inFlight()) {
        if (chunk.lane().lane() == partition) {
          chunks.addAll(toState(chunk));
        }
      }
    }
    return chunks;
  }

  private List<byte[]> toState(SentChunk chunk) {
    if (chunk.purpose() == Purpose.EARLY || outdated.contains(chunk)) {
      return List.of();
    }
    byte[] bytes = passedOn.get(chunk);
    if (bytes != null) {
      return List.of(bytes);
    }
    ChunkDraft all = ChunkDraft.unbounded();
    for (ChunkEntry entry : chunk.entries()) {
      all.add(entry, BacklogEntry.bytes(entry.change()), chunk.dueMs());
    }
    List<Covered> coverage = chunk.coverage();
    all.coverAll(coverage);
    return StateChunks.of(chunk.lane(), all, this::encode);
  }

  /** Takes back a chunk that {@link #unacknowledged} gave. */
  void restore(Arrival chunk) throws DamagedChunkException {
    ChunkHeader header = chunk.header();
    noteLog(header);
    absorb(
        peer(header.route().region()).link,
        laneId(header, header.route(), chunk.partition()),
        header,
        chunk.entries());
  }
}
