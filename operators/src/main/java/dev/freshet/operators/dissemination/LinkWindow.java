package dev.freshet.operators.dissemination;

import dev.freshet.schemas.Purpose;

/**
 * How much may be under way on a link: about what it delivers within two of its round trips, so
 * that a value waits where a newer one can take its place, and not in a socket or a queue on the
 * way.
 *
 * <p>Round trips are short up to twice the fastest recent one, or that plus {@link #QUEUE_MS}.
 * While the link is behind it is a quarter of the fastest one: what is significant then passes what
 * waits, but not what is under way. For catch-up, which has time, it is a quarter of that queue: it
 * takes what live changes leave, and they meet hardly a queue of it (the idea of LEDBAT, RFC 6817).
 *
 * <p>Times are nanoseconds of one monotonic clock.
 */
final class LinkWindow {

  /** An inbox takes larger ones, but they would take long to apply, and in a broker's memory. */
  static final long CHUNK_BYTES_MAX = 1 << 20;

  /**
   * One part in so many comes on top, for what is sent out of turn: a chunk in turn may take the
   * first half of that.
   */
  private static final long EARLY_SHARE = 2;

  /** Waiting on the way that is still called none. */
  static final long QUEUE_MS = 50;

  static final long NANOS_PER_MS = 1_000_000;

  /** A spell's fastest round trip is forgotten when the next one ends: ways become longer. */
  private static final long SPELL_NANOS = 10_000 * NANOS_PER_MS;

  /**
   * After a spell in which even the fastest round trip was slower than before, the next one begins
   * with that much less under way: either the way is longer now, or all round trips held their own
   * queue (as BBR probes for it).
   */
  private static final long DRAIN = 8;

  private static final double SLOWER = 1.125;

  /** What is delivered after so long without any acknowledgement says nothing of the speed. */
  private static final long SILENT_NANOS = 2_000 * NANOS_PER_MS;

  /** While the link is behind, a queue may be one part in so many of a round trip. */
  private static final long BEHIND_QUEUE_SHARE = 4;

  /** The queue that catch-up may make is one part in so many of what live changes may. */
  private static final long CATCH_UP_QUEUE_SHARE = 4;

  /** Catch-up may always have one part in so many of the window, however busy the link is. */
  private static final long CATCH_UP_SHARE = 8;

  private final UnderWay all = new UnderWay();
  private final UnderWay catchUp = new UnderWay();

  /** Fastest acknowledgement of this spell and of the one before; 0 if there was none. */
  private long fastestNanos;

  private long fastestBeforeNanos;
  private long spellBeganNanos;

  /** Whether this spell began with less under way. */
  private boolean isDrained;

  /** Bytes acknowledged in the current measuring interval, and its beginning. */
  private long measuredBytes;

  private long measuredSinceNanos;
  private double bytesPerSecond;

  private long lastAcknowledgedNanos;

  /** Whether a chunk may be sent. A chunk may go beyond the limit if something smaller is left. */
  boolean hasRoom() {
    return all.hasRoom();
  }

  /** The same for what should not wait, and is little: it takes a small part of its own. */
  boolean hasRoomForEarly() {
    return all.bytes() < all.limit() + all.limit() / EARLY_SHARE;
  }

  /** The same for what has time. */
  boolean hasRoomForCatchUp() {
    return all.hasRoom() && (catchUp.hasRoom() || catchUp.bytes() < all.limit() / CATCH_UP_SHARE);
  }

  /** The largest chunk that suits, before compression: several of them fill the window. */
  long chunkBytesMax() {
    return chunkBytesMax(all.limit());
  }

  /** The same for catch-up. */
  long catchUpChunkBytesMax() {
    return chunkBytesMax(
        Math.min(all.limit(), Math.max(catchUp.limit(), all.limit() / CATCH_UP_SHARE)));
  }

  private static long chunkBytesMax(long limit) {
    return Math.min(CHUNK_BYTES_MAX, Math.max(UnderWay.BYTES_MIN / 2, limit / 4));
  }

  long inFlightBytes() {
    return all.bytes();
  }

  long limitBytes() {
    return all.limit();
  }

  void sent(long bytes, Purpose purpose, long nowNanos) {
    if (all.bytes() == 0) {
      if (nowNanos - lastAcknowledgedNanos > SPELL_NANOS) {
        // As TCP does after an idle time (RFC 2861).
        all.restart();
        catchUp.restart();
      }
      lastAcknowledgedNanos = nowNanos;
      measuredSinceNanos = nowNanos;
      measuredBytes = 0;
    }
    all.sent(bytes);
    if (purpose == Purpose.CATCH_UP) {
      catchUp.sent(bytes);
    }
  }

  /**
   * A chunk is acknowledged.
   *
   * @param sentNanos when it was sent
   * @param isBehind whether more waits than the link carries
   */
  void acknowledged(long bytes, Purpose purpose, long sentNanos, long nowNanos, boolean isBehind) {
    boolean wasSilent = nowNanos - lastAcknowledgedNanos > SILENT_NANOS;
    lastAcknowledgedNanos = nowNanos;
    long roundTrip = Math.max(1, nowNanos - sentNanos);
    remember(roundTrip, nowNanos);
    if (wasSilent) {
      measuredBytes = 0;
      measuredSinceNanos = nowNanos;
    } else {
      measure(bytes, nowNanos);
    }
    long queue = Math.max(QUEUE_MS * NANOS_PER_MS, fastest());
    long tolerated =
        fastest()
            + (isBehind
                ? Math.max(QUEUE_MS * NANOS_PER_MS, fastest() / BEHIND_QUEUE_SHARE)
                : queue);
    all.acknowledged(bytes, roundTrip <= tolerated);
    all.watchQueue(roundTrip, fastest(), tolerated, nowNanos);
    tolerated = fastest() + queue / CATCH_UP_QUEUE_SHARE;
    if (purpose == Purpose.CATCH_UP) {
      catchUp.acknowledged(bytes, roundTrip <= tolerated);
    }
    catchUp.watchQueue(roundTrip, fastest(), tolerated, nowNanos);
  }

  /** A chunk was given up. */
  void failed(long bytes, Purpose purpose, long nowNanos) {
    all.failed(bytes, nowNanos);
    if (purpose == Purpose.CATCH_UP) {
      catchUp.failed(bytes, nowNanos);
    }
  }

  private void remember(long roundTrip, long nowNanos) {
    if (nowNanos - spellBeganNanos > SPELL_NANOS) {
      spellBeganNanos = nowNanos;
      endSpell();
    }
    fastestNanos = fastestNanos == 0 ? roundTrip : Math.min(fastestNanos, roundTrip);
  }

  private void endSpell() {
    boolean isSlower = fastestBeforeNanos > 0 && fastestNanos > fastestBeforeNanos * SLOWER;
    if (isSlower && !isDrained) {
      all.drain(DRAIN);
      catchUp.drain(DRAIN);
      isDrained = true;
    } else {
      // What is slower though there was no queue is so by itself.
      fastestBeforeNanos = fastestNanos;
      isDrained = false;
    }
    fastestNanos = 0;
    all.giveUpUnused();
    catchUp.giveUpUnused();
  }

  private void measure(long bytes, long nowNanos) {
    measuredBytes += bytes;
    long elapsed = nowNanos - measuredSinceNanos;
    if (elapsed >= Math.max(QUEUE_MS * NANOS_PER_MS, fastest())) {
      double measured = measuredBytes * 1e9 / elapsed;
      // A link that had nothing more to carry is not slow for that.
      bytesPerSecond = all.isInUse() || measured > bytesPerSecond ? measured : bytesPerSecond;
      measuredBytes = 0;
      measuredSinceNanos = nowNanos;
    }
  }

  private long fastest() {
    return fastestBeforeNanos == 0
        ? fastestNanos
        : fastestNanos == 0 ? fastestBeforeNanos : Math.min(fastestNanos, fastestBeforeNanos);
  }

  /** Fastest recent delivery, bytes a second; 0 if none was measured. */
  double bytesPerSecond() {
    return bytesPerSecond;
  }

  /** Fastest recent acknowledgement, ms; 0 if there was none. */
  double roundTripMs() {
    return fastest() / (double) NANOS_PER_MS;
  }

  /** How long something has been under way without any acknowledgement, ms; 0 if nothing is. */
  long silentMs(long nowNanos) {
    return all.bytes() == 0 ? 0 : (nowNanos - lastAcknowledgedNanos) / NANOS_PER_MS;
  }
}
