package dev.freshet.operators.scheduling;

import dev.freshet.connectors.record.Version;
import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/**
 * Reads a compute batch as a feature function in another language would: from the format's
 * description, with nothing shared with the encoder.
 */
final class ComputeBatch {

  /**
   * One key's window.
   *
   * @param key entity key
   * @param version version of the value to come
   * @param eventTimeMs event time of the newest point
   * @param isFirst whether the key has no value yet
   * @param regretRemoved regret at the choice
   * @param dimensions numbers a point
   * @param timestamps event times of the points
   * @param values the points, row by row; empty for JSON
   * @param json the points of a JSON table; empty for numbers
   */
  record Request(
      String key,
      Version version,
      long eventTimeMs,
      boolean isFirst,
      double regretRemoved,
      int dimensions,
      List<Long> timestamps,
      List<Double> values,
      List<String> json) {}

  private ComputeBatch() {}

  static List<Request> decode(byte[] bytes) {
    try (DataInputStream in = new DataInputStream(new ByteArrayInputStream(bytes))) {
      if (in.readByte() != 1) {
        throw new AssertionError("format is not 1");
      }
      int count = readInt(in);
      List<Request> requests = new ArrayList<>();
      for (int i = 0; i < count; i++) {
        requests.add(readRequest(in));
      }
      if (in.available() > 0) {
        throw new AssertionError(in.available() + " bytes after the last request");
      }
      return requests;
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static Request readRequest(DataInputStream in) throws IOException {
    int contextLength = readInt(in);
    long versionTimestamp = readLong(in);
    int origin = readShort(in);
    long contextEventTime = readLong(in);
    boolean isFirst = in.readByte() != 0;
    double regret = Double.longBitsToDouble(readLong(in));
    String contextKey = readText(in, contextLength - 27);
    String key = readText(in, readShort(in));
    long eventTime = readLong(in);
    if (!key.equals(contextKey) || eventTime != contextEventTime) {
      throw new AssertionError("context and request disagree on key or event time");
    }
    int kind = in.readByte();
    int points = readInt(in);
    int dimensions = readInt(in);
    List<Long> timestamps = new ArrayList<>();
    for (int i = 0; i < points; i++) {
      timestamps.add(readLong(in));
    }
    List<Double> values = new ArrayList<>();
    List<String> json = new ArrayList<>();
    if (kind == 2) {
      for (int i = 0; i < points; i++) {
        json.add(readText(in, readInt(in)));
      }
    } else {
      for (int i = 0; i < points * dimensions; i++) {
        values.add(Double.longBitsToDouble(readLong(in)));
      }
    }
    return new Request(
        key,
        new Version(versionTimestamp, origin),
        eventTime,
        isFirst,
        regret,
        dimensions,
        timestamps,
        values,
        json);
  }

  private static int readShort(DataInputStream in) throws IOException {
    return Short.toUnsignedInt(Short.reverseBytes(in.readShort()));
  }

  private static int readInt(DataInputStream in) throws IOException {
    return Integer.reverseBytes(in.readInt());
  }

  private static long readLong(DataInputStream in) throws IOException {
    return Long.reverseBytes(in.readLong());
  }

  private static String readText(DataInputStream in, int length) throws IOException {
    byte[] bytes = new byte[length];
    in.readFully(bytes);
    return new String(bytes, StandardCharsets.UTF_8);
  }
}
