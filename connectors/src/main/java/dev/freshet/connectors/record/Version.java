package dev.freshet.connectors.record;

/**
 * Version of a feature value: a hybrid logical clock and the id of the writer that made it, ordered
 * by timestamp, then origin (Ekko §4.2, definition 1). The larger version wins everywhere.
 *
 * @param timestampMicros hybrid logical clock, microseconds; strictly increasing within one origin
 *     and key group
 * @param origin id of the writer, 0 to 65535
 */
public record Version(long timestampMicros, int origin) implements Comparable<Version> {

  /** The version of a key that has never been computed; smaller than every real one. */
  public static final Version NONE = new Version(0, 0);

  @Override
  public int compareTo(Version other) {
    int byTimestamp = Long.compare(timestampMicros, other.timestampMicros);
    return byTimestamp != 0 ? byTimestamp : Integer.compare(origin, other.origin);
  }

  /** The external form, {@code <timestampMicros>.<origin>}, as in feedback and on the terminal. */
  @Override
  public String toString() {
    return timestampMicros + "." + origin;
  }

  /**
   * Parses the external form.
   *
   * @throws IllegalArgumentException if the text is not {@code <timestampMicros>.<origin>}
   */
  public static Version parse(String text) {
    int dot = text.indexOf('.');
    if (dot > 0) {
      try {
        long timestamp = Long.parseLong(text.substring(0, dot));
        int origin = Integer.parseInt(text.substring(dot + 1));
        if (timestamp >= 0 && origin >= 0 && origin <= 0xFFFF) {
          return new Version(timestamp, origin);
        }
      } catch (NumberFormatException e) {
        throw malformed(text, e);
      }
    }
    throw malformed(text, null);
  }

  private static IllegalArgumentException malformed(String text, Throwable cause) {
    return new IllegalArgumentException(
        "version '"
            + text
            + "' is not '<microseconds>.<origin 0 to 65535>'; send back the version that the client"
            + " returned with the feature",
        cause);
  }
}
