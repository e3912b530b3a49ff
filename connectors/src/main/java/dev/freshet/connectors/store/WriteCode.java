package dev.freshet.connectors.store;

/** What {@code write_if_newer.lua} answers for a key. */
final class WriteCode {

  /** The value was written. */
  static final int WRITTEN = 1;

  /** The same version was there already. */
  static final int DUPLICATE = 0;

  /** A newer version was there. */
  static final int STALE = -1;

  /** What is there is not a value of this layout; it was left alone. */
  static final int FOREIGN = -2;

  /** No answer came; the write may or may not have happened. Not sent by the script. */
  static final int UNANSWERED = Integer.MIN_VALUE;

  private WriteCode() {}
}
