package dev.freshet.operators.scheduling;

import java.util.Arrays;

/**
 * The keys of a {@link RegretTimerService}, each with its index in the heap: a hash table in
 * parallel arrays, without an object for an entry, because at hundreds of thousands of keys what
 * scheduling costs is the memory that it has to fetch.
 *
 * <p>Open addressing with linear probing; the entries behind a removed one move up, so that there
 * are no tombstones. A key keeps its <i>place</i> until the table says that it moved.
 *
 * <p>As in Flink's own state tables, keys that were made to have equal hash codes cost linear time.
 */
final class ScheduledKeys {

  /** Told when an entry is at another place. */
  @FunctionalInterface
  interface Moves {
    void moved(int heapIndex, int place);
  }

  private static final int INITIAL_CAPACITY = 128;
  private static final int MAX_CAPACITY = 1 << 28;

  /** 2^32 divided by the golden ratio (Knuth, TAOCP 6.4): spreads the hash codes of like keys. */
  private static final int SPREAD = 0x9E3779B9;

  private final Moves moves;
  private String[] keys;
  private int[] hashes;
  private int[] heapIndexes;
  private int shift;
  private int size;

  ScheduledKeys(Moves moves) {
    this.moves = moves;
    allocate(INITIAL_CAPACITY);
  }

  /** The key's place, or the complement ({@code ~place}) of the free one where it would be. */
  int find(String key) {
    int hash = key.hashCode();
    int mask = keys.length - 1;
    int place = home(hash);
    for (String found = keys[place]; found != null; found = keys[place]) {
      if (hashes[place] == hash && found.equals(key)) {
        return place;
      }
      place = (place + 1) & mask;
    }
    return ~place;
  }

  String key(int place) {
    return keys[place];
  }

  int heapIndex(int place) {
    return heapIndexes[place];
  }

  void setHeapIndex(int place, int heapIndex) {
    heapIndexes[place] = heapIndex;
  }

  /**
   * Adds a key that is not there; others may move.
   *
   * @param free where {@link #find} would put it
   */
  void add(String key, int free, int heapIndex) {
    int place = free;
    if (4L * (size + 1) > 3L * keys.length) {
      grow();
      place = ~find(key);
    }
    put(place, key, key.hashCode(), heapIndex);
    size++;
    moves.moved(heapIndex, place);
  }

  /** Takes out the key at this place; others may move. */
  void remove(int place) {
    int mask = keys.length - 1;
    int gap = place;
    int next = (gap + 1) & mask;
    while (keys[next] != null) {
      int home = home(hashes[next]);
      // May it move up? Not to before its home.
      if (((next - home) & mask) >= ((next - gap) & mask)) {
        put(gap, keys[next], hashes[next], heapIndexes[next]);
        moves.moved(heapIndexes[next], gap);
        gap = next;
      }
      next = (next + 1) & mask;
    }
    keys[gap] = null;
    size--;
  }

  void clear() {
    if (size > 0) {
      Arrays.fill(keys, null);
      size = 0;
    }
  }

  private int home(int hash) {
    return (hash * SPREAD) >>> shift;
  }

  private void put(int place, String key, int hash, int heapIndex) {
    keys[place] = key;
    hashes[place] = hash;
    heapIndexes[place] = heapIndex;
  }

  private void allocate(int capacity) {
    keys = new String[capacity];
    hashes = new int[capacity];
    heapIndexes = new int[capacity];
    shift = Integer.numberOfLeadingZeros(capacity) + 1;
  }

  private void grow() {
    if (keys.length == MAX_CAPACITY) {
      throw new IllegalStateException(
          size + " keys are pending in one subtask, which is the limit; raise the parallelism");
    }
    String[] oldKeys = keys;
    int[] oldHashes = hashes;
    int[] oldHeapIndexes = heapIndexes;
    allocate(oldKeys.length * 2);
    int mask = keys.length - 1;
    for (int old = 0; old < oldKeys.length; old++) {
      if (oldKeys[old] != null) {
        int place = home(oldHashes[old]);
        while (keys[place] != null) {
          place = (place + 1) & mask;
        }
        put(place, oldKeys[old], oldHashes[old], oldHeapIndexes[old]);
        moves.moved(oldHeapIndexes[old], place);
      }
    }
  }
}
