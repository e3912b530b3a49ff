package dev.freshet.operators.dissemination;

/**
 * How far another region's clock is ahead of this one's, estimated as NTP does: of the four times
 * of an exchange (sent, received, answered, back) the offset is the mean of the two ways'
 * differences, wrong by at most half of the round trip; so the exchange with the shortest one is
 * kept. All times are microseconds.
 */
final class RegionClock {

  /** After this the best exchange is given up for a newer one: clocks drift. */
  private static final long KEEP_MICROS = 120_000_000;

  private long aheadMicros;
  private long roundTripMicros = Long.MAX_VALUE;
  private long estimatedAtMicros = Long.MIN_VALUE;

  /**
   * An exchange.
   *
   * @param sent here, this clock
   * @param received there, their clock
   * @param answered there, their clock
   * @param back here, this clock
   */
  void exchanged(long sent, long received, long answered, long back) {
    long roundTrip = back - sent - (answered - received);
    if (roundTrip < 0) {
      return; // A clock was set meanwhile.
    }
    if (roundTrip <= roundTripMicros || back - estimatedAtMicros > KEEP_MICROS) {
      roundTripMicros = roundTrip;
      aheadMicros = (received - sent + answered - back) / 2;
      estimatedAtMicros = back;
    }
  }

  boolean isKnown() {
    return roundTripMicros != Long.MAX_VALUE;
  }

  /** How far their clock is ahead; 0 if unknown. */
  long aheadMicros() {
    return aheadMicros;
  }
}
