package dev.freshet.connectors.chunk;

import dev.freshet.connectors.record.Version;

/**
 * The newest change of a key, as regions need it; immutable, and shared by the backlogs of all
 * links.
 *
 * @param key entity key
 * @param version of the value
 * @param eventTimeMs event time of the newest event in the value, epoch milliseconds
 * @param computedAtMs when the value was computed, epoch milliseconds of home's clock
 * @param kind {@link #DELETE}, or the ordinal of the value's {@code ValueEncoding}
 * @param regretRemoved regret of the key that this update removed, in units of the fed-back error
 * @param value packed as in the store; not to be changed
 */
@SuppressWarnings("ArrayRecordComponent") // never compared
public record KeyChange(
    String key,
    Version version,
    long eventTimeMs,
    long computedAtMs,
    int kind,
    float regretRemoved,
    byte[] value) {

  /** {@link #kind} of a tombstone. */
  public static final int DELETE = -1;

  /** Whether this one supersedes the other. */
  public boolean isNewerThan(KeyChange other) {
    return version.compareTo(other.version) > 0;
  }
}
