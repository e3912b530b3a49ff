package dev.freshet.operators.dissemination;

/**
 * What is under way on a link, and how much may be: a limit that grows by what is acknowledged
 * while all of it is in use and round trips are short, and shrinks when for a while all of them are
 * long.
 *
 * <p>This is the idea of delay-based congestion control (Vegas), for chunks in place of packets:
 * the bottleneck may be a broker or a disk as well as the network. Their pauses make single
 * acknowledgements slow; only a queue that stands makes all of them slow (CoDel, RFC 8289).
 *
 * <p>Sizes are bytes, times nanoseconds of one monotonic clock.
 */
final class UnderWay {

  static final long BYTES_MIN = 4 << 10;
  static final long BYTES_INITIAL = 64 << 10;
  static final long BYTES_MAX = 32 << 20;

  /** So much may always stay unused, for the case that there is suddenly more to send. */
  private static final long BYTES_UNUSED_MIN = 32 << 10;

  /** One part in so many may stay unused. */
  private static final long UNUSED_SHARE = 4;

  private static final double SHRINK = 0.7;

  /** A queue that stands for so long is one; the fastest round trip if that is longer. */
  private static final long STANDING_NANOS = 100 * LinkWindow.NANOS_PER_MS;

  private long limit = BYTES_INITIAL;
  private long bytes;

  /** The most that was under way since {@link #giveUpUnused()}. */
  private long mostBytes;

  private boolean isInUse;
  private long shrunkAtNanos;

  /** Fastest acknowledgement since a moment, to tell a queue that stands. */
  private long standingNanos = Long.MAX_VALUE;

  private long standingSinceNanos;

  long limit() {
    return limit;
  }

  long bytes() {
    return bytes;
  }

  /** Whether more may be sent: also what goes beyond the limit, if something smaller is left. */
  boolean hasRoom() {
    return bytes < limit;
  }

  /** Whether all of it was in use since the last acknowledgement. */
  boolean isInUse() {
    return isInUse;
  }

  void sent(long size) {
    bytes += size;
    mostBytes = Math.max(mostBytes, bytes);
    isInUse |= !hasRoom();
  }

  /**
   * Something is acknowledged that was sent here.
   *
   * @param isInTime whether without a queue on its way
   */
  void acknowledged(long size, boolean isInTime) {
    bytes -= size;
    if (isInUse && isInTime) {
      limit = Math.min(BYTES_MAX, limit + size);
    }
    isInUse = !hasRoom();
  }

  /** Something was given up. */
  void failed(long size, long nowNanos) {
    bytes -= size;
    shrink(nowNanos, 0, SHRINK);
  }

  /**
   * Shrinks if a queue stands on the link.
   *
   * @param roundTrip of what was just acknowledged, here or not
   * @param fastest recent round trip
   * @param tolerated the longest without a queue
   */
  void watchQueue(long roundTrip, long fastest, long tolerated, long nowNanos) {
    standingNanos = Math.min(standingNanos, roundTrip);
    if (nowNanos - standingSinceNanos < Math.max(STANDING_NANOS, fastest)) {
      return;
    }
    if (standingNanos > tolerated) {
      // The same throughput with the tolerated round trip needs that much less (Little's law).
      shrink(nowNanos, roundTrip, (double) tolerated / standingNanos);
    }
    standingNanos = Long.MAX_VALUE;
    standingSinceNanos = nowNanos;
  }

  private void shrink(long nowNanos, long roundTrip, double factor) {
    // Once a round trip: what is under way was sent under the old limit.
    if (nowNanos - shrunkAtNanos > roundTrip) {
      shrunkAtNanos = nowNanos;
      limit = Math.max(BYTES_MIN, (long) (limit * Math.min(SHRINK, factor)));
    }
  }

  /** Begins anew after a time without use, in which anything may have become of the link. */
  void restart() {
    limit = Math.min(limit, BYTES_INITIAL);
  }

  /** Goes on with one part in so many. */
  void drain(long parts) {
    limit = Math.max(BYTES_MIN, limit / parts);
  }

  /** What was not used says nothing of what the link can do when it is (RFC 7661). */
  void giveUpUnused() {
    limit = Math.min(limit, Math.max(BYTES_UNUSED_MIN, mostBytes + mostBytes / UNUSED_SHARE));
    mostBytes = bytes;
  }
}
