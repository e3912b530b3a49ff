package dev.freshet.connectors.store;

/** What the store answered to a conditional write. */
public enum StoreAnswer {

  /** It is the newest version now. */
  WRITTEN,

  /** A newer version was there; this one is kept behind it, in a table that keeps several. */
  KEPT_AS_OLDER,

  /** The same version was there already. */
  DUPLICATE,

  /** Newer versions were there, as many as are kept, or a newer tombstone. */
  STALE,

  /** What is there is not a value of this layout; it was left alone. */
  FOREIGN;

  static StoreAnswer of(int code) {
    return switch (code) {
      case WriteCode.WRITTEN -> WRITTEN;
      case WriteCode.KEPT_AS_OLDER -> KEPT_AS_OLDER;
      case WriteCode.DUPLICATE -> DUPLICATE;
      case WriteCode.STALE -> STALE;
      case WriteCode.FOREIGN -> FOREIGN;
      default -> throw new IllegalStateException("the script answered " + code);
    };
  }
}
