package dev.freshet.connectors.store;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Deque;
import java.util.List;

/** Writes that wait to be sent, cut into batches by number and by size. */
final class WriteBuffer {

  /** Large enough that a round trip's cost vanishes, small enough not to hold Redis up. */
  static final int BATCH_WRITES_MAX = 200;

  /** Keeps a script call with large values in the order of milliseconds. */
  static final long BATCH_BYTES_MAX = 4 << 20;

  private final Deque<PendingWrite> writes = new ArrayDeque<>();
  private long bytes;

  void add(PendingWrite write) {
    writes.add(write);
    bytes += write.write().bytes();
  }

  boolean isEmpty() {
    return writes.isEmpty();
  }

  /** Whether a batch is as large as it may be. */
  boolean isFull() {
    return writes.size() >= BATCH_WRITES_MAX || bytes >= BATCH_BYTES_MAX;
  }

  /** Takes the next batch: at least one write, whatever its size. */
  WriteBatch next() {
    List<PendingWrite> batch = new ArrayList<>(Math.min(writes.size(), BATCH_WRITES_MAX));
    long batchBytes = 0;
    while (!writes.isEmpty() && batch.size() < BATCH_WRITES_MAX && batchBytes < BATCH_BYTES_MAX) {
      PendingWrite write = writes.removeFirst();
      batchBytes += write.write().bytes();
      batch.add(write);
    }
    bytes -= batchBytes;
    return new WriteBatch(batch);
  }

  Collection<PendingWrite> waiting() {
    return writes;
  }
}
