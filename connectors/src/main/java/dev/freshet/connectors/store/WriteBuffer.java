package dev.freshet.connectors.store;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Deque;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/**
 * Writes that wait to be sent, cut into batches by number and by size.
 *
 * <p>Of each key one write is under way at a time: the next one waits until that is answered.
 * Otherwise an attempt that is repeated could come after a newer write of its key, would find that
 * in the store, and its version, which readers may have seen, would have no change event.
 */
final class WriteBuffer<W extends PendingWrite> {

  /** Large enough that a round trip's cost vanishes, small enough not to hold Redis up. */
  static final int BATCH_WRITES_MAX = 200;

  /** Keeps a script call with large values in the order of milliseconds. */
  static final long BATCH_BYTES_MAX = 4 << 20;

  private final Deque<W> writes = new ArrayDeque<>();
  private final Set<String> keysUnderWay = new HashSet<>();
  private long bytes;
  private long bytesUnderWay;

  void add(W write) {
    writes.addLast(write);
    bytes += write.write().bytes();
  }

  boolean isEmpty() {
    return writes.isEmpty();
  }

  /** Whether as much waits as a batch may have. */
  boolean isFull() {
    return writes.size() >= BATCH_WRITES_MAX || bytes >= BATCH_BYTES_MAX;
  }

  /** Whether as much waits or is under way as so many batches may have. */
  boolean holds(int batches) {
    return size() >= (long) batches * BATCH_WRITES_MAX || bytes() >= batches * BATCH_BYTES_MAX;
  }

  /** Size of what waits or is under way, bytes. */
  long bytes() {
    return bytes + bytesUnderWay;
  }

  /** Number of writes that wait or are under way. */
  int size() {
    return writes.size() + keysUnderWay.size();
  }

  /**
   * Takes the next batch. It is empty if all that waits has a write of its key under way; else it
   * has at least one write, whatever its size.
   */
  WriteBatch<W> next() {
    List<W> batch = new ArrayList<>(Math.min(writes.size(), BATCH_WRITES_MAX));
    Deque<W> passedOver = new ArrayDeque<>();
    long batchBytes = 0;
    while (!writes.isEmpty() && batch.size() < BATCH_WRITES_MAX && batchBytes < BATCH_BYTES_MAX) {
      W write = writes.removeFirst();
      if (keysUnderWay.add(write.key())) {
        batchBytes += write.write().bytes();
        batch.add(write);
      } else {
        passedOver.addFirst(write);
      }
    }
    passedOver.forEach(writes::addFirst);
    bytes -= batchBytes;
    bytesUnderWay += batchBytes;
    return new WriteBatch<>(batch);
  }

  /** A write that was taken has its answer, so that the next one of its key may go. */
  void answered(W write) {
    keysUnderWay.remove(write.key());
    bytesUnderWay -= write.write().bytes();
  }

  Collection<W> waiting() {
    return writes;
  }
}
