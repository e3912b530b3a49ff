package dev.freshet.connectors.store;

/** What {@code write_if_newer.lua} answers for a key. */
final class WriteCode {

  /** A newer version was there; this one is kept behind it, in a table that keeps several. */
  static final int KEPT_AS_OLDER = 2;

  /** The value was written; it is the newest version now. */
  static final int WRITTEN = 1;

  /** The same version was there already, as the newest or as an older one. */
  static final int DUPLICATE = 0;

  /** Newer versions were there, as many as are kept, or a newer tombstone. */
  static final int STALE = -1;

  /** What is there is not a value of this layout; it was left alone. */
  static final int FOREIGN = -2;

  /** No answer came; the write may or may not have happened. Not sent by the script. */
  static final int UNANSWERED = Integer.MIN_VALUE;

  private WriteCode() {}
}
