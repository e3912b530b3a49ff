package dev.freshet.operators.scheduling;

import dev.freshet.connectors.record.Version;
import java.util.SplittableRandom;
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
 * µs (RALF §2.4.3). The baselines do the same with other queues, see {@link TimerQueue}.
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
      record.feedback(new QueryFeedback(Version.NONE, random.nextDouble()), now);
      return policy.priority(record);
    }
  }

  /** A queue with every key in it. */
  @State(Scope.Benchmark)
  public static class Queue {

    /** Which. */
    @Param({"timers", "objects", "tree-set"})
    public String queue;

    TimerQueue timers;

    /** Schedules every key. */
    @Setup(Level.Trial)
    public void setUp(Keys keys) {
      timers = TimerQueue.of(queue);
      for (int i = 0; i < keys.keys; i++) {
        timers.schedule(keys.names[i], keys.priority(i), 0);
      }
    }
  }

  /** An event of a random key. */
  @Benchmark
  public void event(Keys keys, Queue queue) {
    int key = keys.random.nextInt(keys.keys);
    queue.timers.schedule(keys.names[key], keys.afterEvent(key), 0);
  }

  /** A choice. */
  @Benchmark
  public void choice(Keys keys, Queue queue) {
    String key = queue.timers.poll();
    queue.timers.schedule(key, keys.afterChoice(), 0);
  }
}
