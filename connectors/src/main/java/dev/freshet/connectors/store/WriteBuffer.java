package dev.freshet.connectors.store;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Deque;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

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

  /** Puts one write in the place of two of a key, neither of which is under way. */
  @FunctionalInterface
  interface Coalescing<W> {
    /** What waits in their place; null if both must be written. */
    W merge(W waiting, W next);
  }

  /** The writes of one key. */
  private static final class KeyWrites<W> {
    final Deque<W> waiting = new ArrayDeque<>(2);
    boolean isUnderWay;
  }

  private final Coalescing<W> coalescing;

  /** Keys with a write that waits or is under way. */
  private final Map<String, KeyWrites<W>> byKey = new LinkedHashMap<>();

  /** Keys of which a write waits and none is under way, in the order of their turn. */
  private final Deque<KeyWrites<W>> ready = new ArrayDeque<>();

  private int waiting;
  private int underWay;
  private long bytes;
  private long bytesUnderWay;

  /** Every write is sent. */
  WriteBuffer() {
    this((first, second) -> null);
  }

  WriteBuffer(Coalescing<W> coalescing) {
    this.coalescing = coalescing;
  }

  void add(W write) {
    KeyWrites<W> ofKey = byKey.computeIfAbsent(write.key(), key -> new KeyWrites<>());
    if (ofKey.waiting.isEmpty()) {
      if (!ofKey.isUnderWay) {
        ready.addLast(ofKey);
      }
      append(ofKey, write);
      return;
    }
    W last = ofKey.waiting.peekLast();
    W merged = coalescing.merge(last, write);
    if (merged == null) {
      append(ofKey, write);
    } else if (merged != last) {
      ofKey.waiting.removeLast();
      waiting--;
      bytes -= last.write().bytes();
      append(ofKey, merged);
    }
  }

  private void append(KeyWrites<W> ofKey, W write) {
    ofKey.waiting.addLast(write);
    waiting++;
    bytes += write.write().bytes();
  }

  boolean isEmpty() {
    return waiting == 0;
  }

  /** Whether as much waits as a batch may have. */
  boolean isFull() {
    return waiting >= BATCH_WRITES_MAX || bytes >= BATCH_BYTES_MAX;
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
    return waiting + underWay;
  }

  /**
   * Takes the next batch. It is empty if all that waits has a write of its key under way; else it
   * has at least one write, whatever its size.
   */
  WriteBatch<W> next() {
    List<W> batch = new ArrayList<>(Math.min(ready.size(), BATCH_WRITES_MAX));
    long batchBytes = 0;
    while (!ready.isEmpty() && batch.size() < BATCH_WRITES_MAX && batchBytes < BATCH_BYTES_MAX) {
      KeyWrites<W> ofKey = ready.removeFirst();
      W write = ofKey.waiting.removeFirst();
      ofKey.isUnderWay = true;
      batchBytes += write.write().bytes();
      batch.add(write);
    }
    waiting -= batch.size();
    underWay += batch.size();
    bytes -= batchBytes;
    bytesUnderWay += batchBytes;
    return new WriteBatch<>(batch);
  }

  /** A write that was taken has its answer, so that the next one of its key may go. */
  void answered(W write) {
    KeyWrites<W> ofKey = byKey.get(write.key());
    ofKey.isUnderWay = false;
    underWay--;
    bytesUnderWay -= write.write().bytes();
    if (ofKey.waiting.isEmpty()) {
      byKey.remove(write.key());
    } else {
      // It has waited longer than most.
      ready.addFirst(ofKey);
    }
  }

  /** All that waits, the writes of one key in their order. */
  Collection<W> waiting() {
    return byKey.values().stream().flatMap(ofKey -> ofKey.waiting.stream()).toList();
  }
}
