package dev.freshet.operators.dissemination;

import dev.freshet.connectors.chunk.KeyChange;

/** A key with a change that is not sent; it belongs to one {@link ShardBacklog}. */
final class BacklogEntry {

  /** Bytes of an entry in a chunk beside its key and value, about: for cutting chunks to size. */
  static final int OVERHEAD_BYTES = 24;

  /** The newest change. */
  KeyChange change;

  /** Offset of the newest change. */
  long offset;

  /** When the oldest change that waits is due at the destinations, ms. */
  long dueMs;

  /**
   * The highest priority of its changes that were significant and were not sent out of turn since;
   * 0 if none was.
   */
  double earlyPriority;

  /** Whether it is in no backlog any more, so that queues that still hold it pass it over. */
  boolean isGone;

  BacklogEntry(KeyChange change, long offset, long dueMs) {
    this.change = change;
    this.offset = offset;
    this.dueMs = dueMs;
  }

  /** Size in a chunk before compression, bytes, about. */
  int bytes() {
    return bytes(change);
  }

  /** Size of a change in a chunk before compression, bytes, about. */
  static int bytes(KeyChange change) {
    return change.key().length() + change.value().length + OVERHEAD_BYTES;
  }
}
