package dev.freshet.operators.dissemination;

/**
 * How much may be under way on a link: about what it delivers within two of its round trips, so
 * that a value waits where a newer one can take its place, and not in a socket or a queue on the
 * way.
 *
 * <p>The window grows by what is acknowledged while all of it is in use and acknowledgements come
 * within the fastest recent one plus a quarter, or {@link #QUEUE_MS}; it shrinks when for a while
 * all take longer. This is the idea of delay-based congestion control (Vegas), for chunks in place
 * of packets: the bottleneck may be a broker or a disk as well as the network. Their pauses make
 * single acknowledgements slow; only a queue that stands makes all of them slow (CoDel, RFC 8289).
 *
 * <p>Times are nanoseconds of one monotonic clock.
 */
final class LinkWindow {

  static final long BYTES_MIN = 4 << 10;
  static final long BYTES_INITIAL = 64 << 10;
  static final long BYTES_MAX = 32 << 20;

  /** An inbox takes larger ones, but they would take long to apply, and in a broker's memory. */
  static final long CHUNK_BYTES_MAX = 1 << 20;

  /** Waiting on the way that is still called none. */
  static final long QUEUE_MS = 50;

  private static final long NANOS_PER_MS = 1_000_000;

  /** A spell's fastest round trip is forgotten when the next one ends: ways become longer. */
  private static final long SPELL_NANOS = 10_000 * NANOS_PER_MS;

  /**
   * A spell begins with that much less under way, or all round trips would hold their own queue.
   */
  private static final long DRAIN = 8;

  private static final double SHRINK = 0.7;

  /** A queue that stands for so long is one; the fastest round trip if that is longer. */
  private static final long STANDING_NANOS = 100 * NANOS_PER_MS;

  private long limit = BYTES_INITIAL;
  private long inFlight;
  private boolean isInUse;

  /** Fastest acknowledgement of this spell and of the one before; 0 if there was none. */
  private long fastestNanos;

  private long fastestBeforeNanos;
  private long spellBeganNanos;
  private long shrunkAtNanos;

  /** Fastest acknowledgement since a moment, to tell a queue that stands. */
  private long standingNanos = Long.MAX_VALUE;

  private long standingSinceNanos;

  /** Bytes acknowledged in the current measuring interval, and its beginning. */
  private long measuredBytes;

  private long measuredSinceNanos;
  private double bytesPerSecond;

  private long lastAcknowledgedNanos;

  /** Whether a chunk may be sent. A chunk may go beyond the limit if something smaller is left. */
  boolean hasRoom() {
    return inFlight < limit;
  }

  /** The largest chunk that suits, before compression: several of them fill the window. */
  long chunkBytesMax() {
    return Math.min(CHUNK_BYTES_MAX, Math.max(BYTES_MIN / 2, limit / 4));
  }

  long inFlightBytes() {
    return inFlight;
  }

  long limitBytes() {
    return limit;
  }

  void sent(long bytes, long nowNanos) {
    if (inFlight == 0) {
      lastAcknowledgedNanos = nowNanos;
      measuredSinceNanos = nowNanos;
      measuredBytes = 0;
    }
    inFlight += bytes;
    isInUse |= !hasRoom();
  }

  /**
   * A chunk is acknowledged.
   *
   * @param sentNanos when it was sent
   */
  void acknowledged(long bytes, long sentNanos, long nowNanos) {
    inFlight -= bytes;
    lastAcknowledgedNanos = nowNanos;
    long roundTrip = Math.max(1, nowNanos - sentNanos);
    remember(roundTrip, nowNanos);
    measure(bytes, nowNanos);
    if (isInUse && roundTrip <= tolerated()) {
      limit = Math.min(BYTES_MAX, limit + bytes);
    }
    watchQueue(roundTrip, nowNanos);
    isInUse = !hasRoom();
  }

  private long tolerated() {
    return fastest() + Math.max(QUEUE_MS * NANOS_PER_MS, fastest());
  }

  private void watchQueue(long roundTrip, long nowNanos) {
    standingNanos = Math.min(standingNanos, roundTrip);
    if (nowNanos - standingSinceNanos < Math.max(STANDING_NANOS, fastest())) {
      return;
    }
    if (standingNanos > tolerated()) {
      shrink(nowNanos, roundTrip);
    }
    standingNanos = Long.MAX_VALUE;
    standingSinceNanos = nowNanos;
  }

  /** A chunk was given up. */
  void failed(long bytes, long nowNanos) {
    inFlight -= bytes;
    shrink(nowNanos, 0);
  }

  private void shrink(long nowNanos, long roundTrip) {
    // Once a round trip: what is under way was sent under the old limit.
    if (nowNanos - shrunkAtNanos > roundTrip) {
      shrunkAtNanos = nowNanos;
      limit = Math.max(BYTES_MIN, (long) (limit * SHRINK));
    }
  }

  private void remember(long roundTrip, long nowNanos) {
    if (nowNanos - spellBeganNanos > SPELL_NANOS) {
      spellBeganNanos = nowNanos;
      fastestBeforeNanos = fastestNanos;
      fastestNanos = 0;
      limit = Math.max(BYTES_MIN, limit / DRAIN);
    }
    fastestNanos = fastestNanos == 0 ? roundTrip : Math.min(fastestNanos, roundTrip);
  }

  private void measure(long bytes, long nowNanos) {
    measuredBytes += bytes;
    long elapsed = nowNanos - measuredSinceNanos;
    if (elapsed >= Math.max(QUEUE_MS * NANOS_PER_MS, fastest())) {
      double measured = measuredBytes * 1e9 / elapsed;
      // A link that had nothing more to carry is not slow for that.
      bytesPerSecond = isInUse || measured > bytesPerSecond ? measured : bytesPerSecond;
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
    return inFlight == 0 ? 0 : (nowNanos - lastAcknowledgedNanos) / NANOS_PER_MS;
  }
}
