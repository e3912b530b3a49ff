package dev.freshet.operators.scheduling;

import java.util.AbstractCollection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.Map;
import java.util.PriorityQueue;
import java.util.TreeSet;

/** Fires keys in order of priority: our timer service and what it is compared with. */
interface TimerQueue {

  /** Schedules a key, or moves it. */
  void schedule(String key, double priority, long lastChosenMs);

  /** Takes out the first key. */
  String poll();

  /** An empty queue by its name in the report. */
  static TimerQueue of(String name) {
    return switch (name) {
      case "timers" -> new Timers();
      case "objects" -> new Objects();
      case "tree-set" -> new Tree();
      case "priority-queue" -> new Linear();
      default -> throw new IllegalArgumentException("no queue '" + name + "'");
    };
  }

  /** Ours. */
  final class Timers implements TimerQueue {
    private final RegretTimerService timers = new RegretTimerService();

    @Override
    public void schedule(String key, double priority, long lastChosenMs) {
      timers.schedule(key, priority, lastChosenMs);
    }

    @Override
    public String poll() {
      return timers.poll();
    }
  }

  /** The textbook's indexed heap. */
  final class Objects implements TimerQueue {
    private final ObjectHeap timers = new ObjectHeap();

    @Override
    public void schedule(String key, double priority, long lastChosenMs) {
      timers.schedule(key, priority, lastChosenMs);
    }

    @Override
    public String poll() {
      return timers.poll();
    }
  }

  /** A key in a collection of the JDK. */
  record Entry(String key, double priority, long lastChosenMs) {
    static final Comparator<Entry> ORDER =
        Comparator.comparingDouble(Entry::priority)
            .reversed()
            .thenComparingLong(Entry::lastChosenMs)
            .thenComparing(Entry::key);
  }

  /** A collection of the JDK that is moved in by removing and adding. */
  abstract class RemoveAndAdd<C extends AbstractCollection<Entry>> implements TimerQueue {
    final C entries;
    final Map<String, Entry> byKey = new HashMap<>();

    RemoveAndAdd(C entries) {
      this.entries = entries;
    }

    abstract Entry pollFirst();

    @Override
    public void schedule(String key, double priority, long lastChosenMs) {
      Entry entry = new Entry(key, priority, lastChosenMs);
      Entry before = byKey.put(key, entry);
      if (before != null) {
        entries.remove(before);
      }
      entries.add(entry);
    }

    @Override
    public String poll() {
      String key = pollFirst().key();
      byKey.remove(key);
      return key;
    }
  }

  /** Balanced tree. */
  final class Tree extends RemoveAndAdd<TreeSet<Entry>> {
    Tree() {
      super(new TreeSet<>(Entry.ORDER));
    }

    @Override
    Entry pollFirst() {
      return entries.pollFirst();
    }
  }

  /** Heap without an index, which is searched from end to end for a key that moves. */
  final class Linear extends RemoveAndAdd<PriorityQueue<Entry>> {
    Linear() {
      super(new PriorityQueue<>(Entry.ORDER));
    }

    @Override
    Entry pollFirst() {
      return entries.poll();
    }
  }
}
