package dev.freshet.operators.dissemination;

import dev.freshet.connectors.link.Transport;
import dev.freshet.schemas.LinkReport;
import dev.freshet.schemas.Purpose;
import java.util.Collection;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.function.Predicate;
import org.apache.flink.util.clock.Clock;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One sender's way to one next hop: what waits for it, what is under way, and what goes next.
 *
 * <p>It belongs to the task's thread and never blocks it; links know nothing of each other, so a
 * slow or dead one delays only what goes along it. See {@code docs/multicast.md}, "A link".
 */
final class Link {

  private static final Logger LOG = LoggerFactory.getLogger(Link.class);

  /** Sent this much before it would be late: timers are not exact. */
  static final long MARGIN_MS = 5;

  /** While live chunks are due, one in so many is of catch-up, if any waits. */
  static final int CATCH_UP_EVERY = 5;

  private static final long RETRY_MS_MIN = 100;
  private static final long RETRY_MS_MAX = 5_000;
  private static final int RETRY_DOUBLINGS = 6;

  /** Makes the bytes of a chunk. */
  @FunctionalInterface
  interface Encoder {
    /** Encodes a chunk of this lane. */
    Encoded encode(LaneId lane, Purpose purpose, ChunkDraft draft);
  }

  /**
   * A chunk as it goes on the wire.
   *
   * @param bytes of it
   * @param rawBytes of its payload before compression
   */
  @SuppressWarnings("ArrayRecordComponent") // never compared
  record Encoded(byte[] bytes, long rawBytes) {}

  /** Hears of chunks, on the task's thread. */
  interface Listener {
    /** The next hop has it. */
    void acknowledged(Link link, SentChunk chunk);

    /** It was given up: what it held and covered must go again. Early chunks cover nothing. */
    void failed(Link link, SentChunk chunk);
  }

  private final String region;
  private final Transport transport;
  private final Encoder encoder;
  private final TaskThread task;
  private final Clock clock;
  private final Listener listener;
  private final Map<LaneId, Lane> lanes = new LinkedHashMap<>();

  /** By identity: comparing chunks would compare all that is in them. */
  private final Set<SentChunk> inFlight = Collections.newSetFromMap(new IdentityHashMap<>());

  private final LinkWindow window = new LinkWindow();
  private final LinkCounters counters = new LinkCounters();
  private int failures;
  private long notBeforeMs;
  private int liveSinceCatchUp;

  Link(
      String region,
      Transport transport,
      Encoder encoder,
      TaskThread task,
      Clock clock,
      Listener listener) {
    this.region = region;
    this.transport = transport;
    this.encoder = encoder;
    this.task = task;
    this.clock = clock;
    this.listener = listener;
  }

  /** Brings work to the task's thread. */
  @FunctionalInterface
  interface TaskThread {
    void run(String what, Runnable work);
  }

  String region() {
    return region;
  }

  LinkWindow window() {
    return window;
  }

  LinkCounters counters() {
    return counters;
  }

  Collection<Lane> lanes() {
    return lanes.values();
  }

  Collection<SentChunk> inFlight() {
    return inFlight;
  }

  /** The lane of this id. */
  Lane lane(LaneId id, Priorities priorities) {
    return lanes.computeIfAbsent(id, key -> new Lane(key, priorities));
  }

  /** Removes lanes that fulfil a condition, whatever is in them. */
  void removeLanes(Predicate<Lane> condition) {
    lanes.values().removeIf(condition);
  }

  /** Keys with a change that is not sent. */
  long backlogKeys() {
    return lanes.values().stream().mapToLong(Lane::size).sum();
  }

  /**
   * Whether something waits that what comes now should not overtake. Catch-up waits for live
   * changes, and not they for it.
   */
  boolean isBehind(Purpose purpose) {
    boolean isCatchUp = purpose == Purpose.CATCH_UP;
    for (Lane lane : lanes.values()) {
      if (!lane.isEmpty() && (isCatchUp || !lane.id().isCatchUp())) {
        return true;
      }
    }
    return !hasRoom(isCatchUp);
  }

  private boolean hasRoom(boolean isCatchUp) {
    return isCatchUp ? window.hasRoomForCatchUp() : window.hasRoom();
  }

  /** Whether something waits for room in the window, and not for company. */
  private boolean hasOverdue() {
    return lanes.values().stream()
        .anyMatch(lane -> lane.isBehind() || (lane.id().isCatchUp() && !lane.isEmpty()));
  }

  /** Whether a lane should leave now. */
  boolean isReady(Lane lane, long nowMs) {
    return lane.leaveAtMs(MARGIN_MS) <= nowMs
        || isFull(lane)
        || (lane.latestMs(MARGIN_MS) <= nowMs && lane.bytes() >= window.chunkBytesMax());
  }

  /**
   * Whether a lane has so much that it should not wait for its time.
   *
   * <p>Chunks of the window's size would do for the link. But while a change waits, a newer one of
   * its key may take its place, so what is not due stays, as long as the link takes it quickly when
   * it is.
   */
  boolean isFull(Lane lane) {
    return lane.bytes() >= fullBytes(lane);
  }

  private double fullBytes(Lane lane) {
    return lane.fillMs() == 0
        ? window.chunkBytesMax()
        : Math.max(LinkWindow.CHUNK_BYTES_MAX, window.bytesPerSecond() * lane.fillMs() / 1e3);
  }

  /**
   * Sends what is due, and what fills a chunk, as far as the window allows.
   *
   * @return when to call again at the latest, ms; {@link Long#MAX_VALUE} if the next
   *     acknowledgement or the next change is early enough
   */
  long pump() {
    long nowMs = clock.absoluteTimeMillis();
    if (nowMs < notBeforeMs) {
      return lanes.values().stream().allMatch(Lane::isEmpty) ? Long.MAX_VALUE : notBeforeMs;
    }
    Lane ready = next(nowMs);
    while (ready != null && window.hasRoom()) {
      send(ready, nowMs);
      ready = next(nowMs);
    }
    if (ready != null) {
      markBehind(nowMs);
      sendPastOthers(nowMs);
    }
    return nextLeaveMs();
  }

  /** What is significant does not wait for an acknowledgement, but for a little company. */
  private void sendPastOthers(long nowMs) {
    for (Lane lane : lanes.values()) {
      if (window.hasRoomForEarly() && lane.significantAtMs() <= nowMs) {
        send(lane, Purpose.EARLY, lane.takeSignificant(window.chunkBytesMax() / 2, nowMs));
      }
    }
  }

  private void markBehind(long nowMs) {
    for (Lane lane : lanes.values()) {
      // What leaves together takes some round trips, which the prediction knows of.
      long lateMs = LinkWindow.QUEUE_MS + (long) window.roundTripMs();
      if (!lane.id().isCatchUp() && lane.latestMs(MARGIN_MS) <= nowMs - lateMs) {
        lane.fallBehind();
      }
    }
  }

  /** When the next chunk must leave, ms; {@link Long#MAX_VALUE} if none waits or none may go. */
  long nextLeaveMs() {
    long leave = Long.MAX_VALUE;
    for (Lane lane : lanes.values()) {
      leave = Math.min(leave, nextLeaveMs(lane));
    }
    return leave;
  }

  /** When a lane's next chunk must leave, as {@link #nextLeaveMs()}. */
  long nextLeaveMs(Lane lane) {
    long leave = Long.MAX_VALUE;
    if (hasRoom(lane.id().isCatchUp())) {
      leave = lane.leaveAtMs(MARGIN_MS);
    } else if (window.hasRoomForEarly()) {
      leave = lane.significantAtMs();
    }
    return leave == Long.MAX_VALUE ? leave : Math.max(leave, notBeforeMs);
  }

  /** The lane that sends next: live ones by urgency; catch-up if none is ready, or in its turn. */
  private Lane next(long nowMs) {
    Lane live = null;
    Lane catchUp = null;
    for (Lane lane : lanes.values()) {
      if (lane.id().isCatchUp()) {
        boolean isNext = catchUp == null && !lane.isEmpty() && window.hasRoomForCatchUp();
        catchUp = isNext ? lane : catchUp;
      } else if (isReady(lane, nowMs)) {
        live = live == null || lane.leaveAtMs(0) < live.leaveAtMs(0) ? lane : live;
      }
    }
    boolean isCatchUpsTurn = catchUp != null && liveSinceCatchUp >= CATCH_UP_EVERY - 1;
    return live == null || isCatchUpsTurn ? catchUp : live;
  }

  private void send(Lane lane, long nowMs) {
    if (lane.isBehind()) {
      // A lane has been behind for as long as its oldest change is overdue; as much again is long.
      ChunkDraft early = lane.takeEarly(window.chunkBytesMax() / 2, nowMs - OVERDUE_MS, nowMs);
      if (!early.isEmpty()) {
        send(lane, Purpose.EARLY, early);
        return;
      }
    }
    if (lane.id().isCatchUp()) {
      liveSinceCatchUp = 0;
      send(lane, Purpose.CATCH_UP, lane.take(window.catchUpChunkBytesMax(), nowMs));
      return;
    }
    liveSinceCatchUp++;
    send(lane, Purpose.LIVE, lane.take(window.chunkBytesMax(), nowMs));
    if (lane.latestMs(MARGIN_MS) > nowMs) {
      lane.catchUp();
    }
  }

  /** What is so long overdue goes out of turn, in case it never gets its turn. */
  static final long OVERDUE_MS = 5_000;

  private void send(Lane lane, Purpose purpose, ChunkDraft draft) {
    Encoded encoded = encoder.encode(lane.id(), purpose, draft);
    SentChunk chunk =
        new SentChunk(
            lane.id(),
            purpose,
            draft.entries(),
            draft.coverage(),
            draft.dueMs(),
            encoded.rawBytes(),
            encoded.bytes().length,
            clock.relativeTimeNanos());
    send(chunk, encoded.bytes());
  }

  /** Sends a chunk that is made already, past all that waits. */
  void send(SentChunk chunk, byte[] bytes) {
    inFlight.add(chunk);
    window.sent(chunk.wireBytes(), chunk.purpose(), chunk.sentNanos());
    transport.send(
        region,
        chunk.lane().table(),
        chunk.lane().lane(),
        bytes,
        failure -> task.run("take an answer of " + region, () -> onAnswer(chunk, failure)));
  }

  /** What it has delivered and holds. */
  LinkReport report() {
    return LinkReport.newBuilder()
        .setTo(region)
        .setChunks(counters.chunks())
        .setRawBytes(counters.rawBytes())
        .setWireBytes(counters.wireBytes())
        .setCatchUpBytes(counters.catchUpBytes())
        .setBacklogKeys(backlogKeys())
        .setBehind(hasOverdue())
        .setInFlightBytes(window.inFlightBytes())
        .setBytesPerS(window.bytesPerSecond())
        .setRoundTripMs(window.roundTripMs())
        .setSilentMs(window.silentMs(clock.relativeTimeNanos()))
        .build();
  }

  private void onAnswer(SentChunk chunk, Exception failure) {
    if (!inFlight.remove(chunk)) {
      return;
    }
    if (failure == null) {
      failures = 0;
      window.acknowledged(
          chunk.wireBytes(),
          chunk.purpose(),
          chunk.sentNanos(),
          clock.relativeTimeNanos(),
          lanes.values().stream().anyMatch(Lane::isBehind));
      counters.count(chunk);
      listener.acknowledged(this, chunk);
    } else {
      onFailure(chunk, failure);
    }
  }

  private void onFailure(SentChunk chunk, Exception failure) {
    window.failed(chunk.wireBytes(), chunk.purpose(), clock.relativeTimeNanos());
    long delay = RETRY_MS_MIN << Math.min(failures++, RETRY_DOUBLINGS);
    notBeforeMs = clock.absoluteTimeMillis() + Math.min(RETRY_MS_MAX, delay);
    if (Integer.bitCount(failures) == 1) {
      LOG.warn(
          "A chunk of {} changes for {} failed, the {}. in a row: {}",
          chunk.entries().size(),
          region,
          failures,
          failure.toString());
    }
    listener.failed(this, chunk);
  }
}
