package dev.freshet.connectors.chunk;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.Arrays;

/**
 * Avro's binary encoding, read from an array. Unlike Avro's decoder, it knows how many bytes there
 * are, so that no length in damaged bytes makes it allocate more, and it refuses malformed UTF-8.
 */
final class AvroInput {

  private static final int VARINT_BYTES_MAX = 10;
  private static final char REPLACEMENT = '\uFFFD';
  private static final VarHandle FLOAT =
      MethodHandles.byteArrayViewVarHandle(float[].class, ByteOrder.LITTLE_ENDIAN);
  private static final VarHandle DOUBLE =
      MethodHandles.byteArrayViewVarHandle(double[].class, ByteOrder.LITTLE_ENDIAN);

  private final byte[] bytes;
  private final int end;
  private int at;

  AvroInput(byte[] bytes, int from, int end) {
    this.bytes = bytes;
    this.at = from;
    this.end = end;
  }

  /** Index of the next byte. */
  int position() {
    return at;
  }

  long readLong() throws BadBytesException {
    long zigzag = 0;
    int last = Math.min(end, at + VARINT_BYTES_MAX);
    for (int shift = 0; at < last; shift += 7) {
      byte next = bytes[at++];
      zigzag |= (next & 0x7FL) << shift;
      if (next >= 0) {
        return zigzag >>> 1 ^ -(zigzag & 1);
      }
    }
    throw new BadBytesException(
        at == end ? "it ends within a number" : "at byte " + at + " is a number without an end");
  }

  int readInt() throws BadBytesException {
    long value = readLong();
    if (value != (int) value) {
      throw new BadBytesException("before byte " + at + " is " + value + ", which is no int");
    }
    return (int) value;
  }

  /** An int from 0 to a limit, exclusive: an enum's symbol, a union's branch. */
  int readIndex(int limit) throws BadBytesException {
    int index = readInt();
    if (index < 0 || index >= limit) {
      throw new BadBytesException(
          "before byte " + at + " is the number " + index + ", of " + limit + " that are known");
    }
    return index;
  }

  boolean readBoolean() throws BadBytesException {
    need(1);
    byte value = bytes[at++];
    if (value < 0 || value > 1) {
      throw new BadBytesException("before byte " + at + " is " + value + ", which is no boolean");
    }
    return value == 1;
  }

  float readFloat() throws BadBytesException {
    need(Float.BYTES);
    float value = (float) FLOAT.get(bytes, at);
    at += Float.BYTES;
    return value;
  }

  double readDouble() throws BadBytesException {
    need(Double.BYTES);
    double value = (double) DOUBLE.get(bytes, at);
    at += Double.BYTES;
    return value;
  }

  byte[] readBytes() throws BadBytesException {
    int from = skipBytes();
    return Arrays.copyOfRange(bytes, from, at);
  }

  String readString() throws BadBytesException {
    return text(skipBytes());
  }

  /** Reads text: null if it is what is expected, else what it is. */
  String readUnless(byte[] expected) throws BadBytesException {
    int from = skipBytes();
    return Arrays.equals(bytes, from, at, expected, 0, expected.length) ? null : text(from);
  }

  private String text(int from) throws BadBytesException {
    String text = new String(bytes, from, at - from, UTF_8);
    // What Java replaced was malformed, unless the text has that character itself.
    if (text.indexOf(REPLACEMENT) >= 0) {
      byte[] again = text.getBytes(UTF_8);
      if (!Arrays.equals(again, 0, again.length, bytes, from, at)) {
        throw new BadBytesException("the text before byte " + at + " is not UTF-8");
      }
    }
    return text;
  }

  /** Passes over bytes or text, up to {@link #position}. Gives the index of the first. */
  int skipBytes() throws BadBytesException {
    long length = readLong();
    if (length < 0 || length > end - at) {
      throw new BadBytesException(
          "at byte " + at + " are " + length + " bytes announced, and " + (end - at) + " follow");
    }
    int from = at;
    at += (int) length;
    return from;
  }

  /**
   * How many items of an array follow before the next call; 0 at its end.
   *
   * @param itemBytesMin fewest bytes that an item can have, at least 1
   */
  int readBlock(int itemBytesMin) throws BadBytesException {
    long items = readLong();
    if (items < 0) {
      items = -items;
      // The block's size, for readers that skip it.
      readLong();
    }
    if (items < 0 || items > (end - at) / itemBytesMin) {
      throw new BadBytesException(
          "at byte "
              + at
              + " are "
              + items
              + " items announced, and "
              + (end - at)
              + " bytes follow");
    }
    return (int) items;
  }

  void expectEnd() throws BadBytesException {
    if (at != end) {
      throw new BadBytesException((end - at) + " bytes follow its end");
    }
  }

  private void need(int count) throws BadBytesException {
    if (end - at < count) {
      throw new BadBytesException("it ends within a field");
    }
  }
}
