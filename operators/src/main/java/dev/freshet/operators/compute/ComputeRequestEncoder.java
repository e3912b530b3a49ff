package dev.freshet.operators.compute;

import dev.freshet.connectors.record.ValueKind;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;

/**
 * Encodes a batch of windows for the feature function. Little-endian:
 *
 * <pre>
 * u8 format = 1 | u32 count | count x
 *   u32 context length | context | u16 key length | key | i64 event time, ms | u8 kind
 *   | u32 n points | u32 d numbers a point | n x i64 event time, ms
 *   | scalar and vector: n x d x f64; json: n x (u32 length, UTF-8)
 * </pre>
 *
 * <p>Where the vectors of a window differ in length, d is the longest and the others end in NaN: a
 * malformed event spoils its own key's window and never the framing of its neighbours.
 *
 * <p>Not thread-safe; reused from batch to batch.
 */
public final class ComputeRequestEncoder {

  /** Number of the format, its first byte. */
  public static final byte FORMAT = 1;

  private static final int COUNT_OFFSET = 1;
  private static final int INITIAL_CAPACITY = 1 << 16;
  private static final int CAPACITY_MAX = Integer.MAX_VALUE - 8;

  /** A batch to which a window is added may be as large as this, so that every window fits. */
  public static final int BATCH_BYTES_MAX = 16 << 20;

  /** Largest window that fits into a request, bytes. */
  public static final int WINDOW_BYTES_MAX = CAPACITY_MAX - BATCH_BYTES_MAX;

  private final ValueKind kind;
  private final int windowBytesMax;
  private ByteBuffer buffer = ByteBuffer.allocate(INITIAL_CAPACITY).order(ByteOrder.LITTLE_ENDIAN);
  private int count;

  /**
   * An encoder for windows whose events have this kind of value.
   *
   * @param windowBytesMax largest window that is taken, at most {@link #WINDOW_BYTES_MAX}
   */
  public ComputeRequestEncoder(ValueKind kind, int windowBytesMax) {
    this.kind = kind;
    this.windowBytesMax = Math.min(windowBytesMax, WINDOW_BYTES_MAX);
    clear();
  }

  /** Forgets the batch. */
  public void clear() {
    buffer.clear();
    buffer.put(FORMAT).putInt(0);
    count = 0;
  }

  /** Windows in the batch. */
  public int count() {
    return count;
  }

  /** Size of the batch so far. */
  public int bytes() {
    return buffer.position();
  }

  /** Whether the batch has come to its size, so that nothing more may be added. */
  public boolean isFull() {
    return bytes() >= BATCH_BYTES_MAX;
  }

  /**
   * Adds a window, unless it is too large.
   *
   * @param entries encoded events in order of time: 8 bytes of event time, then from valueOffset on
   *     the value; not empty
   * @return null, or what is wrong with the window, and nothing was added
   */
  public String add(ComputeContext context, List<byte[]> entries, int valueOffset) {
    byte[] contextBytes = context.encode();
    byte[] key = context.key().getBytes(StandardCharsets.UTF_8);
    int longest = 0;
    long bytes = 64L + contextBytes.length + key.length + (long) entries.size() * Long.BYTES;
    for (byte[] entry : entries) {
      longest = Math.max(longest, entry.length - valueOffset);
      bytes += entry.length - valueOffset + Integer.BYTES;
    }
    if (kind == ValueKind.VECTOR) {
      bytes += (long) longest * entries.size();
    }
    if (bytes > windowBytesMax) {
      return "the window of key '"
          + context.key()
          + "' has "
          + entries.size()
          + " events and takes "
          + bytes
          + " bytes, and at most "
          + windowBytesMax
          + " fit into a request; shorten the table's window, or send smaller events";
    }
    ensure(bytes);
    buffer.putInt(contextBytes.length).put(contextBytes);
    buffer.putShort((short) key.length).put(key);
    buffer.putLong(context.eventTimeMs());
    buffer.put((byte) kind.ordinal());
    buffer.putInt(entries.size());
    buffer.putInt(kind == ValueKind.VECTOR ? longest / Double.BYTES : 1);
    for (byte[] entry : entries) {
      buffer.put(entry, 0, Long.BYTES);
    }
    for (byte[] entry : entries) {
      int length = entry.length - valueOffset;
      if (kind == ValueKind.JSON) {
        buffer.putInt(length);
      }
      buffer.put(entry, valueOffset, length);
      if (kind == ValueKind.VECTOR) {
        for (int missing = longest - length; missing > 0; missing -= Double.BYTES) {
          buffer.putDouble(Double.NaN);
        }
      }
    }
    count++;
    return null;
  }

  /** The batch's bytes. */
  public byte[] toBytes() {
    buffer.putInt(COUNT_OFFSET, count);
    return Arrays.copyOf(buffer.array(), buffer.position());
  }

  private void ensure(long bytes) {
    if (buffer.remaining() >= bytes) {
      return;
    }
    long needed = buffer.position() + bytes;
    if (needed > CAPACITY_MAX) {
      throw new IllegalStateException("a window was added to a batch that is full");
    }
    long capacity = Math.min(CAPACITY_MAX, Math.max(buffer.capacity() * 2L, needed));
    ByteBuffer larger = ByteBuffer.allocate((int) capacity).order(ByteOrder.LITTLE_ENDIAN);
    buffer.flip();
    larger.put(buffer);
    buffer = larger;
  }
}
