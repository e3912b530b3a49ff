package dev.freshet.operators.scheduling;

import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;

/**
 * An indexed heap as a textbook has it: binary, an object for each key, found through a {@link
 * HashMap}. It fires keys in the same order as {@link RegretTimerService}; what it costs more is
 * the price of following pointers.
 */
final class ObjectHeap {

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
  private Timer[] heap = new Timer[64];
  private int size;

  void schedule(String key, double priority, long lastChosenMs) {
    Timer timer = timers.get(key);
    if (timer == null) {
      timer = new Timer(key, priority, lastChosenMs, size);
      if (size == heap.length) {
        heap = Arrays.copyOf(heap, size * 2);
      }
      timers.put(key, timer);
      heap[size++] = timer;
      siftUp(timer);
      return;
    }
    timer.priority = priority;
    timer.lastChosenMs = lastChosenMs;
    siftUp(timer);
    siftDown(timer);
  }

  String poll() {
    String key = heap[0].key;
    timers.remove(key);
    Timer last = heap[--size];
    heap[size] = null;
    if (size > 0) {
      place(last, 0);
      siftDown(last);
    }
    return key;
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
