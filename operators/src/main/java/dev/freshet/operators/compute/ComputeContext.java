package dev.freshet.operators.compute;

import dev.freshet.connectors.record.Version;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;

/**
 * What the scheduler wants back with a computed value. It travels through the feature function as
 * opaque bytes.
 *
 * @param key entity key
 * @param version version of the value to come
 * @param eventTimeMs event time of the newest event in the window, epoch milliseconds
 * @param isFirst whether the key has no value yet
 * @param regretRemoved regret of the key when it was chosen, in units of the error
 */
public record ComputeContext(
    String key, Version version, long eventTimeMs, boolean isFirst, double regretRemoved) {

  private static final int FIXED_BYTES = 8 + 2 + 8 + 1 + 8;

  /** Encodes the context. */
  public byte[] encode() {
    byte[] keyBytes = key.getBytes(StandardCharsets.UTF_8);
    return ByteBuffer.allocate(FIXED_BYTES + keyBytes.length)
        .order(ByteOrder.LITTLE_ENDIAN)
        .putLong(version.timestampMicros())
        .putShort((short) version.origin())
        .putLong(eventTimeMs)
        .put((byte) (isFirst ? 1 : 0))
        .putDouble(regretRemoved)
        .put(keyBytes)
        .array();
  }

  /** Decodes what {@link #encode} made. */
  public static ComputeContext decode(ByteBuffer source) {
    ByteBuffer buffer = source.slice().order(ByteOrder.LITTLE_ENDIAN);
    Version version = new Version(buffer.getLong(), Short.toUnsignedInt(buffer.getShort()));
    long eventTime = buffer.getLong();
    boolean isFirst = buffer.get() != 0;
    double regret = buffer.getDouble();
    byte[] key = new byte[buffer.remaining()];
    buffer.get(key);
    return new ComputeContext(
        new String(key, StandardCharsets.UTF_8), version, eventTime, isFirst, regret);
  }
}
