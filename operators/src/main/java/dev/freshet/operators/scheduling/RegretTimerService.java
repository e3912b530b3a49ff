package dev.freshet.operators.scheduling;

import java.util.Arrays;
import java.util.function.ToDoubleFunction;

/**
 * The timer service of feature maintenance: where Flink's fires timers in order of time, this one
 * fires keys in order of priority, the highest first (RALF §2.3.3, eq. 2.9; §2.4.3 "pendingKeys").
 *
 * <p>Of equal priorities the key that was chosen longest ago fires first, so that keys about which
 * nothing is known take turns; of those, the first by name (by UTF-16 unit), so that the same input
 * always fires the same keys.
 *
 * <p>An indexed heap: scheduling, re-ordering and cancelling one key is O(log n), asking for the
 * first is O(1). What costs time at many keys is fetching memory, not comparing. So the heap is of
 * degree 4, which halves the levels, and priorities lie in an array in the heap's order, so that
 * the children of a node come in one fetch; names are only looked at when all else is equal.
 *
 * <p>The order follows from the keys' records, so the service is derived state: it is never
 * checkpointed. After a restore or a rescaling the operator schedules the keys that the subtask now
 * owns again, which is why it needs no partition by key group as Flink's own timer queues do.
 *
 * <p>Example: {@code schedule("a", 1, 0)}, {@code schedule("b", 3, 0)}, {@code schedule("a", 5,
 * 0)}; {@code poll()} is "a", then "b", then null.
 *
 * <p>Not thread-safe; a subtask's task thread owns it.
 */
public final class RegretTimerService {

  private static final int INITIAL_CAPACITY = 64;

  /** A node has 2^2 children. */
  private static final int DEGREE_BITS = 2;

  private static final int DEGREE = 1 << DEGREE_BITS;

  // The heap, in parallel arrays: priority, time of the last choice, and place among the keys.
  private double[] priorities = new double[INITIAL_CAPACITY];
  private long[] lastChosen = new long[INITIAL_CAPACITY];
  private int[] places = new int[INITIAL_CAPACITY];
  private int size;

  private final ScheduledKeys keys = new ScheduledKeys((index, place) -> places[index] = place);

  /**
   * Schedules a key, or moves it when it is scheduled already.
   *
   * @param priority larger fires earlier
   * @param lastChosenMs of equal priorities, smaller fires earlier
   * @throws IllegalArgumentException if the priority is NaN, which has no place in an order
   */
  public void schedule(String key, double priority, long lastChosenMs) {
    requireNumber(key, priority);
    int place = keys.find(key);
    if (place < 0) {
      if (size == places.length) {
        grow();
      }
      keys.add(key, ~place, size);
      place = places[size];
      siftUp(size++, place, priority, lastChosenMs);
      return;
    }
    int index = keys.heapIndex(place);
    double before = priorities[index];
    if (priority > before || (priority == before && lastChosenMs < lastChosen[index])) {
      siftUp(index, place, priority, lastChosenMs);
    } else if (priority != before || lastChosenMs != lastChosen[index]) {
      siftDown(index, place, priority, lastChosenMs);
    }
  }

  /**
   * Gives every scheduled key a new priority, in O(n).
   *
   * @throws IllegalArgumentException if a priority is NaN
   */
  void reprioritize(ToDoubleFunction<String> priorityOf) {
    for (int index = 0; index < size; index++) {
      String key = keyAt(index);
      priorities[index] = requireNumber(key, priorityOf.applyAsDouble(key));
    }
    for (int index = parent(size - 1); index >= 0; index--) {
      siftDown(index, places[index], priorities[index], lastChosen[index]);
    }
  }

  /** Takes a key out; nothing happens when it is not scheduled. */
  public void cancel(String key) {
    int place = keys.find(key);
    if (place >= 0) {
      remove(keys.heapIndex(place));
    }
  }

  /** Takes out and returns the key that fires first, or null when none is scheduled. */
  public String poll() {
    return size == 0 ? null : pollAny(0);
  }

  /**
   * Takes out and returns any key, whatever its priority; all are equally likely when the index is
   * drawn at random.
   *
   * @param index at least 0, below {@link #size}
   */
  String pollAny(int index) {
    String key = keyAt(index);
    remove(index);
    return key;
  }

  /** The key that fires first, or null when none is scheduled. */
  public String peek() {
    return size == 0 ? null : keyAt(0);
  }

  /** Whether the key is scheduled. */
  public boolean isScheduled(String key) {
    return keys.find(key) >= 0;
  }

  /** Number of scheduled keys. */
  public int size() {
    return size;
  }

  /** Whether no key is scheduled. */
  public boolean isEmpty() {
    return size == 0;
  }

  /** Whether this service's first key fires before the other's first. */
  boolean firesBefore(RegretTimerService other) {
    return size > 0
        && (other.size == 0
            || precedes(
                priorities[0],
                lastChosen[0],
                keyAt(0),
                other.priorities[0],
                other.lastChosen[0],
                other.keyAt(0)));
  }

  /** Takes all keys out. */
  void clear() {
    keys.clear();
    size = 0;
  }

  private static double requireNumber(String key, double priority) {
    if (Double.isNaN(priority)) {
      throw new IllegalArgumentException(
          "priority of key '" + key + "' is NaN; a policy must return a number");
    }
    return priority;
  }

  private String keyAt(int index) {
    return keys.key(places[index]);
  }

  private static int parent(int index) {
    return (index - 1) >> DEGREE_BITS;
  }

  private static int firstChild(int index) {
    return (index << DEGREE_BITS) + 1;
  }

  private void grow() {
    int capacity = size * 2;
    priorities = Arrays.copyOf(priorities, capacity);
    lastChosen = Arrays.copyOf(lastChosen, capacity);
    places = Arrays.copyOf(places, capacity);
  }

  private void remove(int index) {
    keys.remove(places[index]);
    int last = --size;
    if (index == last) {
      return;
    }
    // The last key usually belongs near the bottom again: so down without comparing with it, up.
    int place = places[last];
    double priority = priorities[last];
    long chosen = lastChosen[last];
    int gap = index;
    for (int child = firstChild(gap); child < size; child = firstChild(gap)) {
      child = firstAmongSiblings(child);
      put(gap, places[child], priorities[child], lastChosen[child]);
      gap = child;
    }
    siftUp(gap, place, priority, chosen);
  }

  /** Puts the key at this place into the gap, or further up where it belongs. */
  private void siftUp(int gap, int place, double priority, long chosen) {
    int index = gap;
    while (index > 0) {
      int parent = parent(index);
      if (!precedes(place, priority, chosen, parent)) {
        break;
      }
      put(index, places[parent], priorities[parent], lastChosen[parent]);
      index = parent;
    }
    put(index, place, priority, chosen);
  }

  /** Puts the key at this place into the gap, or further down where it belongs. */
  private void siftDown(int gap, int place, double priority, long chosen) {
    int index = gap;
    for (int child = firstChild(index); child < size; child = firstChild(index)) {
      child = firstAmongSiblings(child);
      if (precedes(place, priority, chosen, child)) {
        break;
      }
      put(index, places[child], priorities[child], lastChosen[child]);
      index = child;
    }
    put(index, place, priority, chosen);
  }

  /** Of this child and its younger siblings, the one that fires first. */
  private int firstAmongSiblings(int child) {
    int first = child;
    int end = Math.min(child + DEGREE, size);
    for (int sibling = child + 1; sibling < end; sibling++) {
      if (precedes(places[sibling], priorities[sibling], lastChosen[sibling], first)) {
        first = sibling;
      }
    }
    return first;
  }

  private void put(int index, int place, double priority, long chosen) {
    places[index] = place;
    priorities[index] = priority;
    lastChosen[index] = chosen;
    keys.setHeapIndex(place, index);
  }

  /** Whether the key at this place fires before the one at this index. */
  private boolean precedes(int place, double priority, long chosen, int index) {
    double other = priorities[index];
    return priority != other ? priority > other : precedesByTie(place, chosen, index);
  }

  private boolean precedesByTie(int place, long chosen, int index) {
    long other = lastChosen[index];
    return chosen != other ? chosen < other : keys.key(place).compareTo(keyAt(index)) < 0;
  }

  private static boolean precedes(
      double priority, long chosen, String key, double otherPriority, long other, String otherKey) {
    if (priority != otherPriority) {
      return priority > otherPriority;
    }
    return chosen != other ? chosen < other : key.compareTo(otherKey) < 0;
  }
}
