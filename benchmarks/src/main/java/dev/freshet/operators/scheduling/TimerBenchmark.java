package dev.freshet.operators.scheduling;

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
 * What an operation of the timer service costs as the number of scheduled keys grows, beside other
 * queues. Nothing but the queue is in it: keys come one after the other from memory, as fresh
 * strings, as a parser makes them.
 */
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Fork(
    value = 1,
    jvmArgs = {"-Xmx3g", "-XX:+UseSerialGC"})
@State(Scope.Benchmark)
public class TimerBenchmark {

  /** Drawn keys; they repeat after so many, far apart enough to be out of every cache. */
  private static final int DRAWS = 1 << 20;

  /** What an event without feedback adds, beside feedback of 0.5 on average. */
  private static final double DEFAULT_REGRET = 1e-6;

  /** A key that has this regret is about to be chosen; its regret then begins anew. */
  private static final double MAX_REGRET = 8;

  /** Chosen keys that come back with their next event. */
  private static final int AWAY = 256;

  /** Number of scheduled keys. */
  @Param({"1000", "10000", "100000", "1000000"})
  public int keys;

  /** Which keys events are of: all alike, or few most of the time (Zipf). */
  @Param({"uniform", "skewed"})
  public String draw;

  /** The queue. */
  @Param({"timers", "objects", "tree-set", "priority-queue"})
  public String queue;

  private final SplittableRandom random = new SplittableRandom(20_261_120);
  private TimerQueue timers;
  private double[] priorities;
  private String[] drawnKeys;
  private int[] drawn;
  private int next;
  private String[] away;
  private int oldestAway;
  private long choices;

  /** Schedules every key, and draws the keys of the events to come. */
  @Setup(Level.Trial)
  public void setUp() {
    timers = TimerQueue.of(queue);
    priorities = new double[keys];
    for (int key = 0; key < keys; key++) {
      priorities[key] = MAX_REGRET * random.nextDouble();
      timers.schedule(name(key), priorities[key], key);
    }
    drawn =
        "skewed".equals(draw)
            ? Draws.skewed(random, keys, DRAWS)
            : Draws.uniform(random, keys, DRAWS);
    drawnKeys = new String[DRAWS];
    for (int i = 0; i < DRAWS; i++) {
      drawnKeys[i] = name(drawn[i]);
    }
    away = new String[Math.min(AWAY, keys / 4)];
    for (int i = 0; i < away.length; i++) {
      away[i] = timers.poll();
    }
  }

  private static String name(int key) {
    char[] name = "vm-0000000".toCharArray();
    for (int i = name.length - 1, rest = key; rest > 0; i--, rest /= 10) {
      name[i] = (char) ('0' + rest % 10);
    }
    return new String(name);
  }

  /** An event without feedback: its key's priority hardly changes. */
  @Benchmark
  public void event() {
    int draw = next++ & (DRAWS - 1);
    int key = drawn[draw];
    priorities[key] += DEFAULT_REGRET;
    timers.schedule(drawnKeys[draw], priorities[key], 0);
  }

  /** Feedback: the priority rises by what an error is; now and then it falls to where it began. */
  @Benchmark
  public void feedback() {
    int draw = next++ & (DRAWS - 1);
    int key = drawn[draw];
    double before = priorities[key];
    priorities[key] = (before < MAX_REGRET ? before : 0) + random.nextDouble();
    timers.schedule(drawnKeys[draw], priorities[key], 0);
  }

  /**
   * A choice: the first key leaves, and one that was chosen before comes back. Priorities fall by
   * the range that they have while every key is chosen once, so that a key comes back anywhere
   * among the others and the order never settles.
   */
  @Benchmark
  public void choice() {
    String back = away[oldestAway];
    away[oldestAway] = timers.poll();
    oldestAway = oldestAway + 1 == away.length ? 0 : oldestAway + 1;
    double fallen = (double) choices++ / keys;
    timers.schedule(back, MAX_REGRET * (random.nextDouble() - fallen), choices);
  }
}
