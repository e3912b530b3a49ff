package dev.freshet.connectors.chunk;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.util.Arrays;
import org.apache.avro.io.BinaryData;

/** Avro's binary encoding, written to an array that grows and is used again. */
final class AvroOutput {

  private static final int VARINT_BYTES_MAX = 10;

  /** Longest array that every JVM can make. */
  private static final int SIZE_MAX = Integer.MAX_VALUE - 8;

  private byte[] bytes = new byte[1024];
  private int size;

  /** Forgets what was written. */
  void clear() {
    size = 0;
  }

  int size() {
    return size;
  }

  /** What was written, up to {@link #size}; valid until the next write. */
  byte[] array() {
    return bytes;
  }

  void writeLong(long value) {
    reserve(VARINT_BYTES_MAX);
    size += BinaryData.encodeLong(value, bytes, size);
  }

  void writeInt(int value) {
    reserve(VARINT_BYTES_MAX);
    size += BinaryData.encodeInt(value, bytes, size);
  }

  void writeBoolean(boolean value) {
    reserve(1);
    bytes[size++] = (byte) (value ? 1 : 0);
  }

  void writeFloat(float value) {
    reserve(Float.BYTES);
    size += BinaryData.encodeFloat(value, bytes, size);
  }

  void writeString(String text) {
    writeBytes(text.getBytes(UTF_8));
  }

  void writeBytes(byte[] value) {
    writeInt(value.length);
    writeFixed(value, 0, value.length);
  }

  /** Bytes without their length. */
  void writeFixed(byte[] from, int at, int length) {
    reserve(length);
    System.arraycopy(from, at, bytes, size, length);
    size += length;
  }

  private void reserve(int more) {
    int least = Math.addExact(size, more);
    if (least > bytes.length) {
      bytes = Arrays.copyOf(bytes, (int) Math.max(least, Math.min(2L * bytes.length, SIZE_MAX)));
    }
  }
}
