package dev.freshet.connectors.store;

import static java.nio.charset.StandardCharsets.UTF_8;

import dev.freshet.connectors.record.Version;
import dev.freshet.schemas.FeatureChange;
import dev.freshet.schemas.Operation;
import dev.freshet.schemas.ValueEncoding;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * The online store's layout, a public contract: {@code docs/store-layout.md}. Little-endian.
 *
 * <pre>
 * 0  u8   layout number          4  i64  version, timestamp     20 i64  computed at, ms
 * 1  u8   flags                  12 i64  event time, ms         28 …    value
 * 2  u16  version, origin
 * </pre>
 */
public final class StoreLayout {

  /** The layout that is written. */
  public static final int LAYOUT = 1;

  /** Bytes before the packed value. */
  public static final int HEADER_BYTES = 28;

  private static final int TOMBSTONE = 1;
  private static final int ENCODING_SHIFT = 1;
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
    return ByteBuffer.allocate(HEADER_BYTES + value.remaining())
        .order(ByteOrder.LITTLE_ENDIAN)
        .put((byte) LAYOUT)
        .put((byte) flags)
        .putShort((short) change.getVersionOrigin())
        .putLong(change.getVersionTimestamp())
        .putLong(change.getEventTime())
        .putLong(change.getComputedAt())
        .put(value)
        .array();
  }

  /**
   * Unpacks what a Redis key holds.
   *
   * @throws IllegalArgumentException if it is not a value of this layout
   */
  public static StoredValue decode(byte[] stored) {
    if (stored.length < HEADER_BYTES) {
      throw new IllegalArgumentException(
          "a stored value has "
              + stored.length
              + " bytes, less than the header's "
              + HEADER_BYTES
              + "; another program wrote it: give Freshet a key prefix of its own");
    }
    ByteBuffer buffer = ByteBuffer.wrap(stored).order(ByteOrder.LITTLE_ENDIAN);
    int flags = Byte.toUnsignedInt(buffer.get(AT_FLAGS));
    if (buffer.get(0) != LAYOUT || flags > FLAGS_MAX) {
      throw new IllegalArgumentException(
          "a stored value has layout "
              + Byte.toUnsignedInt(buffer.get(0))
              + " and flags "
              + flags
              + ", this release reads layout "
              + LAYOUT
              + "; upgrade the reader, or give Freshet a key prefix of its own");
    }
    byte[] value = new byte[stored.length - HEADER_BYTES];
    buffer.get(HEADER_BYTES, value);
    return new StoredValue(
        new Version(buffer.getLong(AT_TIMESTAMP), Short.toUnsignedInt(buffer.getShort(AT_ORIGIN))),
        buffer.getLong(AT_EVENT_TIME),
        buffer.getLong(AT_COMPUTED_AT),
        (flags & TOMBSTONE) != 0,
        ValueEncoding.values()[flags >> ENCODING_SHIFT],
        value);
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
