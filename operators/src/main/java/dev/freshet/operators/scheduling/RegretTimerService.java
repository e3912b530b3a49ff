package dev.freshet.operators.scheduling;

import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.function.ToDoubleFunction;

/**
 * The timer service of feature maintenance: where Flink's fires timers in order of time, this one
 * fires keys in order of priority, the highest first (RALF §2.3.3, eq. 2.9; §2.4.3 "pendingKeys").
 *
 * <p>An indexed binary heap: scheduling, re-ordering and cancelling one key is O(log n), asking for
 * the first is O(1). Of equal priorities the key that was chosen longest ago fires first, so that
 * keys about which nothing is known take turns; of those, the first by name (by UTF-16 unit), so
 * that the same input always fires the same keys.
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

  private static final class Timer {
    final String key;
    double priority;
    long lastChosenMs;
    int index;

    Timer(String key, double priority, long lastChosenMs, int index) {
      this.key = key;
      this.priority = priority;
      this.lastChosenMs = lastChosenMs;
      this.index = index;
    }

    boolean firesBefore(Timer other) {
      if (priority != other.priority) {
        return priority > other.priority;
      }
      if (lastChosenMs != other.lastChosenMs) {
        return lastChosenMs < other.lastChosenMs;
      }
      return key.compareTo(other.key) < 0;
    }
  }

  private final Map<String, Timer> timers = new HashMap<>();
  private Timer[] heap = new Timer[INITIAL_CAPACITY];
  private int size;

  /**
   * Schedules a key, or moves it when it is scheduled already.
   *
   * @param priority larger fires earlier
   * @param lastChosenMs of equal priorities, smaller fires earlier
   * @throws IllegalArgumentException if the priority is NaN, which has no place in an order
   */
  public void schedule(String key, double priority, long lastChosenMs) {
    requireNumber(key, priority);
    Timer timer = timers.get(key);
    if (timer == null) {
      insert(key, priority, lastChosenMs);
    } else if (timer.priority != priority || timer.lastChosenMs != lastChosenMs) {
      timer.priority = priority;
      timer.lastChosenMs = lastChosenMs;
      siftUp(timer);
      siftDown(timer);
    }
  }

  /**
   * Gives every scheduled key a new priority, in O(n).
   *
   * @throws IllegalArgumentException if a priority is NaN
   */
  void reprioritize(ToDoubleFunction<String> priorities) {
    for (int i = 0; i < size; i++) {
      Timer timer = heap[i];
      timer.priority = requireNumber(timer.key, priorities.applyAsDouble(timer.key));
    }
    for (int i = (size >>> 1) - 1; i >= 0; i--) {
      siftDown(heap[i]);
    }
  }

  /** Takes a key out; nothing happens when it is not scheduled. */
  public void cancel(String key) {
    Timer timer = timers.remove(key);
    if (timer != null) {
      removeAt(timer.index);
    }
  }

  /** Takes out and returns the key that fires first, or null when none is scheduled. */
  public String poll() {
    if (size == 0) {
      return null;
    }
    return pollAny(0);
  }

  /**
   * Takes out and returns any key, whatever its priority; all are equally likely when the place is
   * drawn at random.
   *
   * @param place at least 0, below {@link #size}
   */
  String pollAny(int place) {
    String key = heap[place].key;
    timers.remove(key);
    removeAt(place);
    return key;
  }

  /** The key that fires first, or null when none is scheduled. */
  public String peek() {
    return size == 0 ? null : heap[0].key;
  }

  /** Whether the key is scheduled. */
  public boolean isScheduled(String key) {
    return timers.containsKey(key);
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
    return size > 0 && (other.size == 0 || heap[0].firesBefore(other.heap[0]));
  }

  /** Takes all keys out. */
  void clear() {
    timers.clear();
    Arrays.fill(heap, 0, size, null);
    size = 0;
  }

  private static double requireNumber(String key, double priority) {
    if (Double.isNaN(priority)) {
      throw new IllegalArgumentException(
          "priority of key '" + key + "' is NaN; a policy must return a number");
    }
    return priority;
  }

  private void insert(String key, double priority, long lastChosenMs) {
    if (size == heap.length) {
      heap = Arrays.copyOf(heap, size * 2);
    }
    Timer timer = new Timer(key, priority, lastChosenMs, size);
    timers.put(key, timer);
    heap[size++] = timer;
    siftUp(timer);
  }

  private void removeAt(int index) {
    Timer last = heap[--size];
    heap[size] = null;
    if (index == size) {
      return;
    }
    place(last, index);
    siftUp(last);
    siftDown(last);
  }

  private void siftUp(Timer timer) {
    int index = timer.index;
    while (index > 0) {
      Timer parent = heap[(index - 1) >>> 1];
      if (!timer.firesBefore(parent)) {
        break;
      }
      int parentIndex = parent.index;
      place(parent, index);
      index = parentIndex;
    }
    place(timer, index);
  }

  private void siftDown(Timer timer) {
    int index = timer.index;
    int half = size >>> 1;
    while (index < half) {
      int child = 2 * index + 1;
      if (child + 1 < size && heap[child + 1].firesBefore(heap[child])) {
        child++;
      }
      if (!heap[child].firesBefore(timer)) {
        break;
      }
      place(heap[child], index);
      index = child;
    }
    place(timer, index);
  }

  private void place(Timer timer, int index) {
    heap[index] = timer;
    timer.index = index;
  }
}
