package dev.freshet.connectors.store;

/** A write that is not acknowledged yet, with what its answer is for. */
interface PendingWrite {

  /** Entity key; of each, one write is under way at a time. */
  String key();

  /** What is written. */
  StoreWrite write();
}
