package dev.freshet.operators.scheduling;

import dev.freshet.connectors.record.Version;
import java.util.Comparator;
import java.util.SplittableRandom;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;

/**
 * What the scheduler adds to an event (score the key anew, move it) and to a choice (take the first
 * key, put it back with another score), with every key pending. RALF's prototype took 300 µs and 50
 * µs (RALF §2.4.3). The baseline is what the JDK offers: an ordered set, remove and add.
 */
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Fork(value = 1, jvmArgs = "-Xmx2g")
public class SchedulerBenchmark {

  /** Keys with records, all pending. */
  @State(Scope.Benchmark)
  public static class Keys {

    /** Number of keys. */
    @Param({"10000", "300000"})
    public int keys;

    /** A key is chosen, and its record cleared, about every so many of its events. */
    private static final int EVENTS_PER_CHOICE = 16;

    final SchedulingPolicy policy = new Subjects.AlwaysScored();
    final SplittableRandom random = new SplittableRandom(20_261_120);
    String[] names;
    KeyRecord[] records;
    long now;
    long choices;

    /** Makes the records. */
    @Setup(Level.Trial)
    public void setUp() {
      names = Events.keys(keys);
      records = new KeyRecord[keys];
      for (int i = 0; i < keys; i++) {
        records[i] = new KeyRecord();
        records[i].regret = random.nextDouble();
        records[i].eventPending(now++);
      }
    }

    double priority(int key) {
      return policy.priority(records[key]);
    }

    /**
     * The score of a key that comes back after a choice. Scores fall by one while every key is
     * chosen once, so that a key comes back anywhere among the others and the order never settles.
     */
    double afterChoice() {
      return priority(random.nextInt(keys)) - (double) choices++ / keys;
    }

    /** An event of a key, with an error fed back on it: its priority changes. */
    double afterEvent(int key) {
      KeyRecord record = records[key];
      if (record.pending() == EVENTS_PER_CHOICE) {
        record.pending = 0;
        record.regret = 0;
      }
      record.eventPending(now++);
      record.feedback(QueryFeedback.of(Version.NONE, random.nextDouble()), now);
      return policy.priority(record);
    }
  }

  /** Our queue. */
  @State(Scope.Benchmark)
  public static class Timers {
    final RegretTimerService timers = new RegretTimerService();

    /** Schedules every key. */
    @Setup(Level.Trial)
    public void setUp(Keys keys) {
      for (int i = 0; i < keys.keys; i++) {
        timers.schedule(keys.names[i], keys.priority(i), 0);
      }
    }
  }

  /** A key in the JDK's ordered set. */
  record Entry(String key, double priority) {
    static final Comparator<Entry> ORDER =
        Comparator.comparingDouble(Entry::priority).reversed().thenComparing(Entry::key);
  }

  /** The baseline's queue. */
  @State(Scope.Benchmark)
  public static class Ordered {
    final TreeSet<Entry> set = new TreeSet<>(Entry.ORDER);
    Entry[] entries;

    /** Schedules every key. */
    @Setup(Level.Trial)
    public void setUp(Keys keys) {
      entries = new Entry[keys.keys];
      for (int i = 0; i < keys.keys; i++) {
        entries[i] = new Entry(keys.names[i], keys.priority(i));
        set.add(entries[i]);
      }
    }
  }

  /** An event of a random key, in our scheduler. */
  @Benchmark
  public void event(Keys keys, Timers timers) {
    int key = keys.random.nextInt(keys.keys);
    timers.timers.schedule(keys.names[key], keys.afterEvent(key), 0);
  }

  /** An event of a random key, in the baseline. */
  @Benchmark
  public void eventOrderedSet(Keys keys, Ordered ordered) {
    int key = keys.random.nextInt(keys.keys);
    ordered.set.remove(ordered.entries[key]);
    ordered.entries[key] = new Entry(keys.names[key], keys.afterEvent(key));
    ordered.set.add(ordered.entries[key]);
  }

  /** A choice, in our scheduler. */
  @Benchmark
  public void choice(Keys keys, Timers timers) {
    String key = timers.timers.poll();
    timers.timers.schedule(key, keys.afterChoice(), 0);
  }

  /** A choice, in the baseline. */
  @Benchmark
  public void choiceOrderedSet(Keys keys, Ordered ordered) {
    Entry first = ordered.set.pollFirst();
    ordered.set.add(new Entry(first.key(), keys.afterChoice()));
  }
}
