package dev.freshet.connectors.store;

import static java.nio.charset.StandardCharsets.UTF_8;

import dev.freshet.connectors.chunk.KeyChange;
import dev.freshet.connectors.record.Version;
import dev.freshet.schemas.FeatureChange;
import dev.freshet.schemas.Operation;
import dev.freshet.schemas.ValueEncoding;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;

/**
 * The online store's layout, a public contract: {@code docs/store-layout.md}. Little-endian.
 *
 * <pre>
 * 0  u8   layout number          4  i64  version, timestamp     20 i64  computed at, ms
 * 1  u8   flags                  12 i64  event time, ms         28 …    value
 * 2  u16  version, origin
 * </pre>
 *
 * <p>Behind a version there may be the one before it, laid out the same, and then its length as
 * u32.
 */
public final class StoreLayout {

  /** The layout that is written. */
  public static final int LAYOUT = 1;

  /** Bytes before the packed value. */
  public static final int HEADER_BYTES = 28;

  private static final int TOMBSTONE = 1;
  private static final int ENCODING_SHIFT = 1;
  private static final int KEEPS_OLDER = 8;
  private static final int FLAGS_MAX = TOMBSTONE | 2 << ENCODING_SHIFT;
  private static final int ORIGIN_MAX = 0xFFFF;

  private static final int AT_FLAGS = 1;
  private static final int AT_ORIGIN = 2;
  private static final int AT_TIMESTAMP = 4;
  private static final int AT_EVENT_TIME = 12;
  private static final int AT_COMPUTED_AT = 20;

  private StoreLayout() {}

  /** The Redis key of an entity: {@code <prefix><table>:<key>}, UTF-8. */
  public static byte[] key(String prefix, String table, String entityKey) {
    return (prefix + table + ":" + entityKey).getBytes(UTF_8);
  }

  /**
   * Packs a change.
   *
   * @throws IllegalArgumentException if its version or encoding cannot be stored
   */
  public static byte[] encode(FeatureChange change) {
    boolean tombstone = change.getOperation() == Operation.DELETE;
    ValueEncoding encoding = tombstone ? ValueEncoding.NONE : change.getEncoding();
    ByteBuffer value = tombstone ? ByteBuffer.allocate(0) : change.getValue().duplicate();
    check(change, change.getVersionTimestamp() >= 0, "a version's timestamp is at least 0");
    check(
        change,
        change.getVersionOrigin() >= 0 && change.getVersionOrigin() <= ORIGIN_MAX,
        "a version's origin is 0 to 65535");
    check(
        change,
        encoding != ValueEncoding.FLOAT32_VECTOR || value.remaining() % Float.BYTES == 0,
        "a float32 vector's bytes are a multiple of 4");
    int flags = (tombstone ? TOMBSTONE : 0) | encoding.ordinal() << ENCODING_SHIFT;
    return header(value.remaining(), flags, change.getVersionOrigin())
        .putLong(change.getVersionTimestamp())
        .putLong(change.getEventTime())
        .putLong(change.getComputedAt())
        .put(value)
        .array();
  }

  /** Packs a change, which has been checked. */
  public static byte[] encode(KeyChange change) {
    int flags = change.isDelete() ? TOMBSTONE : change.kind() << ENCODING_SHIFT;
    return header(change.value().length, flags, change.version().origin())
        .putLong(change.version().timestampMicros())
        .putLong(change.eventTimeMs())
        .putLong(change.computedAtMs())
        .put(change.value())
        .array();
  }

  private static ByteBuffer header(int valueBytes, int flags, int origin) {
    return ByteBuffer.allocate(HEADER_BYTES + valueBytes)
        .order(ByteOrder.LITTLE_ENDIAN)
        .put((byte) LAYOUT)
        .put((byte) flags)
        .putShort((short) origin);
  }

  /**
   * Unpacks the newest version of what a Redis key holds.
   *
   * @throws IllegalArgumentException if it is not a value of this layout
   */
  public static StoredValue decode(byte[] stored) {
    return decodeAll(stored).get(0);
  }

  /**
   * Unpacks every version that a Redis key holds, newest first.
   *
   * @throws IllegalArgumentException if it is not a value of this layout
   */
  public static List<StoredValue> decodeAll(byte[] stored) {
    List<StoredValue> versions = new ArrayList<>();
    ByteBuffer rest = ByteBuffer.wrap(stored);
    while (rest.hasRemaining() || versions.isEmpty()) {
      rest = takeNewest(rest.slice().order(ByteOrder.LITTLE_ENDIAN), versions);
    }
    return versions;
  }

  /** Adds the newest version to those that were found. Gives all older ones, laid out the same. */
  private static ByteBuffer takeNewest(ByteBuffer stored, List<StoredValue> versions) {
    int end = stored.limit();
    if (end < HEADER_BYTES) {
      throw new IllegalArgumentException(
          "a stored value has "
              + end
              + " bytes, less than the header's "
              + HEADER_BYTES
              + "; another program wrote it: give Freshet a key prefix of its own");
    }
    int flags = Byte.toUnsignedInt(stored.get(AT_FLAGS));
    boolean keepsOlder = (flags & KEEPS_OLDER) != 0;
    if (stored.get(0) != LAYOUT || (flags & ~KEEPS_OLDER) > FLAGS_MAX) {
      throw new IllegalArgumentException(
          "a stored value has layout "
              + Byte.toUnsignedInt(stored.get(0))
              + " and flags "
              + flags
              + ", this release reads layout "
              + LAYOUT
              + "; upgrade the reader, or give Freshet a key prefix of its own");
    }
    int ownBytes = keepsOlder ? ownBytes(stored) : end;
    byte[] value = new byte[ownBytes - HEADER_BYTES];
    stored.get(HEADER_BYTES, value);
    versions.add(
        new StoredValue(
            new Version(
                stored.getLong(AT_TIMESTAMP), Short.toUnsignedInt(stored.getShort(AT_ORIGIN))),
            stored.getLong(AT_EVENT_TIME),
            stored.getLong(AT_COMPUTED_AT),
            (flags & TOMBSTONE) != 0,
            ValueEncoding.values()[(flags & ~KEEPS_OLDER) >> ENCODING_SHIFT],
            value));
    return keepsOlder
        ? stored.slice(ownBytes, end - Integer.BYTES - ownBytes)
        : stored.slice(end, 0);
  }

  /** Bytes of the newest version, where older ones follow. */
  private static int ownBytes(ByteBuffer stored) {
    int end = stored.limit() - Integer.BYTES;
    long olderBytes = end < HEADER_BYTES ? 0 : Integer.toUnsignedLong(stored.getInt(end));
    if (olderBytes < HEADER_BYTES || olderBytes > end - HEADER_BYTES) {
      throw new IllegalArgumentException(
          "of a stored value's "
              + stored.limit()
              + " bytes, older versions are said to have "
              + olderBytes
              + ", which cannot be; it is damaged: delete its key");
    }
    return end - (int) olderBytes;
  }

  private static void check(FeatureChange change, boolean condition, String rule) {
    if (!condition) {
      throw new IllegalArgumentException(
          "the change of key '"
              + change.getKey()
              + "' of table '"
              + change.getTable()
              + "', version "
              + change.getVersionTimestamp()
              + "."
              + change.getVersionOrigin()
              + ", cannot be stored: "
              + rule);
    }
  }
}
