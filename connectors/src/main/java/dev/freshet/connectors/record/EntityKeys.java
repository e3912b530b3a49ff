package dev.freshet.connectors.record;

/** What an entity key may be. */
public final class EntityKeys {

  /** Longest entity key in UTF-8 bytes: a key is part of every Redis key and of every record. */
  public static final int MAX_BYTES = 1024;

  private EntityKeys() {}

  /**
   * What is wrong with a key, or null if it is usable: not empty, at most {@link #MAX_BYTES} bytes
   * in UTF-8, and without half a surrogate pair, which UTF-8 cannot carry.
   */
  public static String problem(String key) {
    if (key.isEmpty()) {
      return "is empty; give every entity a key";
    }
    int bytes = 0;
    for (int i = 0; i < key.length(); i++) {
      char c = key.charAt(i);
      if (c < 0x80) {
        bytes++;
      } else if (c < 0x800) {
        bytes += 2;
      } else if (!Character.isSurrogate(c)) {
        bytes += 3;
      } else if (Character.isHighSurrogate(c)
          && i + 1 < key.length()
          && Character.isLowSurrogate(key.charAt(i + 1))) {
        bytes += 4;
        i++;
      } else {
        return "has half of a surrogate pair at character " + i + "; send valid Unicode";
      }
      if (bytes > MAX_BYTES) {
        return "is longer than " + MAX_BYTES + " bytes in UTF-8; use a shorter key or its hash";
      }
    }
    return null;
  }
}
