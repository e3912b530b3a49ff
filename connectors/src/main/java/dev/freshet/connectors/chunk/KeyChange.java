package dev.freshet.connectors.chunk;

import dev.freshet.connectors.record.Version;
import dev.freshet.schemas.ValueEncoding;

/**
 * The newest change of a key, as regions need it; immutable, and shared by the backlogs of all
 * links. Only what a store can hold is one (see {@code StoreLayout}).
 *
 * @param key entity key
 * @param version of the value
 * @param eventTimeMs event time of the newest event in the value, epoch milliseconds
 * @param computedAtMs when the value was computed, epoch milliseconds of home's clock
 * @param kind {@link #DELETE}, or the ordinal of the value's {@code ValueEncoding}
 * @param isFirst whether whoever lacks this change has no value of the key, as far as home knows
 * @param regretRemoved regret of the key that this update removed, in units of the fed-back error
 * @param value packed as in the store, empty for a delete; not to be changed
 */
@SuppressWarnings("ArrayRecordComponent") // never compared
public record KeyChange(
    String key,
    Version version,
    long eventTimeMs,
    long computedAtMs,
    int kind,
    boolean isFirst,
    float regretRemoved,
    byte[] value) {

  /** {@link #kind} of a tombstone. */
  public static final int DELETE = -1;

  private static final int KINDS = ValueEncoding.values().length;
  private static final int FLOATS = ValueEncoding.FLOAT32_VECTOR.ordinal();
  private static final int ORIGIN_MAX = 0xFFFF;

  /**
   * Checks what can be stored.
   *
   * @throws IllegalArgumentException if a store cannot hold it
   */
  public KeyChange {
    check(key, version, version.timestampMicros() >= 0, "a version's timestamp is at least 0");
    check(
        key,
        version,
        version.origin() >= 0 && version.origin() <= ORIGIN_MAX,
        "a version's origin is 0 to 65535");
    check(key, version, kind >= DELETE && kind < KINDS, "its kind of value is unknown");
    check(
        key,
        version,
        kind != FLOATS || value.length % Float.BYTES == 0,
        "a float32 vector's bytes are a multiple of 4");
    check(key, version, kind != DELETE || value.length == 0, "a delete has no value");
  }

  /** Whether it is a tombstone. */
  public boolean isDelete() {
    return kind == DELETE;
  }

  /** Whether this one supersedes the other. */
  public boolean isNewerThan(KeyChange other) {
    return version.compareTo(other.version) > 0;
  }

  /**
   * This change for who has not got an older one, in whose place it goes: if that was the key's
   * first value, this is what takes its place, and it removes at least the regret that the older
   * one would have removed.
   */
  public KeyChange inPlaceOf(KeyChange older) {
    return with(
        isFirst || (older.isFirst && !isDelete()), Math.max(regretRemoved, older.regretRemoved));
  }

  /** This change for who has got it by now: it removes nothing any more. */
  public KeyChange asKnown() {
    return with(false, 0);
  }

  private KeyChange with(boolean first, float regret) {
    return first == isFirst && regret == regretRemoved
        ? this
        : new KeyChange(key, version, eventTimeMs, computedAtMs, kind, first, regret, value);
  }

  private static void check(String key, Version version, boolean condition, String rule) {
    if (!condition) {
      throw new IllegalArgumentException(
          "the change of key '" + key + "', version " + version + ", cannot be stored: " + rule);
    }
  }
}
