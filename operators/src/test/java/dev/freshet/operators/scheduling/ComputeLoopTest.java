package dev.freshet.operators.scheduling;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.PriorityQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ScheduledFuture;
import org.apache.flink.streaming.runtime.tasks.ProcessingTimeService;
import org.apache.flink.util.clock.Clock;
import org.junit.jupiter.api.Test;

/** The wall-clock loop on a clock that the test moves, and that a computation moves too. */
class ComputeLoopTest {

  private static final long MS = 1_000_000;
  private static final long SECOND = 1_000 * MS;

  /** Time that passes only in computations and between timers. */
  private static final class ManualTime extends Clock implements ProcessingTimeService {

    private record Timer(long at, long sequence, ProcessingTimeCallback callback) {}

    private final PriorityQueue<Timer> timers =
        new PriorityQueue<>(Comparator.comparingLong(Timer::at).thenComparingLong(Timer::sequence));
    private long nanos = 10 * SECOND;
    private long sequence;

    void pass(long moreNanos) {
      nanos += moreNanos;
    }

    /** Fires timers until this time, each at its time or later. */
    void runUntil(long untilNanos) throws Exception {
      while (!timers.isEmpty() && timers.peek().at() * MS <= untilNanos) {
        Timer timer = timers.poll();
        nanos = Math.max(nanos, timer.at() * MS);
        timer.callback().onProcessingTime(timer.at());
      }
      nanos = Math.max(nanos, untilNanos);
    }

    @Override
    public Clock getClock() {
      return this;
    }

    @Override
    public long absoluteTimeMillis() {
      return nanos / MS;
    }

    @Override
    public long relativeTimeMillis() {
      return nanos / MS;
    }

    @Override
    public long relativeTimeNanos() {
      return nanos;
    }

    @Override
    public ScheduledFuture<?> registerTimer(long timestamp, ProcessingTimeCallback callback) {
      // As Flink's: a timer fires a millisecond after its time at the earliest.
      timers.add(new Timer(Math.max(timestamp, nanos / MS) + 1, sequence++, callback));
      return null;
    }

    @Override
    public ScheduledFuture<?> scheduleAtFixedRate(
        ProcessingTimeCallback callback, long initialDelay, long period) {
      throw new UnsupportedOperationException();
    }

    @Override
    public ScheduledFuture<?> scheduleWithFixedDelay(
        ProcessingTimeCallback callback, long initialDelay, long period) {
      throw new UnsupportedOperationException();
    }

    @Override
    public CompletableFuture<Void> quiesce() {
      return CompletableFuture.completedFuture(null);
    }
  }

  private final ManualTime time = new ManualTime();
  private final List<Long> starts = new ArrayList<>();
  private long computed;
  private int backlog = Integer.MAX_VALUE;

  private ComputeLoop loop(ComputeBudget.WallClock budget, int bundle, long nanosPerKey) {
    return new ComputeLoop(
        budget,
        time,
        maxKeys -> {
          int keys = Math.min(backlog, Math.min(maxKeys, bundle));
          starts.add(time.relativeTimeNanos());
          time.pass(keys * nanosPerKey);
          computed += keys;
          backlog -= keys;
          return new ComputeLoop.Batch(keys, keys * nanosPerKey, backlog == 0);
        });
  }

  @Test
  void pauseEndsWithTheLastThatWasAskedFor() throws Exception {
    ComputeLoop loop = loop(new TimeShareBudget(1), 1, MS);
    backlog = 3;
    loop.pause(500 * MS);
    loop.pause(200 * MS);
    long start = time.relativeTimeNanos();
    loop.wake();
    time.runUntil(start + 499 * MS);
    assertThat(starts).isEmpty();
    time.runUntil(start + 510 * MS);
    assertThat(computed).isEqualTo(3);
    assertThat(time.timers).as("sleeps").isEmpty();

    // Asked for in the middle of a batch, as by a function that is rate limited.
    backlog = 1;
    loop.wake();
    loop.pause(300 * MS);
    time.runUntil(start + 700 * MS);
    assertThat(computed).isEqualTo(3);
    time.runUntil(start + 820 * MS);
    assertThat(computed).isEqualTo(4);
  }

  @Test
  void timeShareIsHonoured() throws Exception {
    for (double share : new double[] {0.1, 0.5, 0.9}) {
      computed = 0;
      long start = time.relativeTimeNanos();
      loop(new TimeShareBudget(share), 1, 100 * MS).wake();
      time.runUntil(start + 100 * SECOND);
      time.timers.clear();
      assertThat(computed * 0.1 / 100).isCloseTo(share, within(0.02));
    }
  }

  @Test
  void rateIsHonouredAndReached() throws Exception {
    long start = time.relativeTimeNanos();
    loop(new RateBudget(10), 16, MS).wake();
    time.runUntil(start + 100 * SECOND);
    assertThat((double) computed).isCloseTo(1_000, within(12.0));
  }

  @Test
  void idleLoopHasNoTimerAndWakesUp() throws Exception {
    backlog = 3;
    ComputeLoop loop = loop(new TimeShareBudget(1), 1, MS);
    assertThat(time.timers).isEmpty();
    loop.wake();
    loop.wake();
    assertThat(time.timers).hasSize(1);
    time.runUntil(time.relativeTimeNanos() + SECOND);
    assertThat(computed).isEqualTo(3);
    assertThat(time.timers).isEmpty();
    backlog = 1;
    loop.wake();
    time.runUntil(time.relativeTimeNanos() + SECOND);
    assertThat(computed).isEqualTo(4);
  }

  @Test
  void keysThatBecomeEligibleInABatchArmNoSecondTimer() throws Exception {
    ComputeLoop[] loop = new ComputeLoop[1];
    loop[0] =
        new ComputeLoop(
            new TimeShareBudget(0.5),
            time,
            maxKeys -> {
              time.pass(10 * MS);
              loop[0].wake();
              return new ComputeLoop.Batch(1, 10 * MS, false);
            });
    loop[0].wake();
    for (int i = 0; i < 100; i++) {
      time.runUntil(time.relativeTimeNanos() + 20 * MS);
      assertThat(time.timers).hasSize(1);
    }
  }

  @Test
  void inputIsTakenInForABoundedSliceBetweenBatches() throws Exception {
    ComputeLoop loop = loop(new TimeShareBudget(1), 1, 100 * MS);
    loop.wake();
    long end = time.relativeTimeNanos() + 10 * SECOND;
    while (time.relativeTimeNanos() < end) {
      loop.inputTaken();
      time.runUntil(time.relativeTimeNanos() + MS);
    }
    // A tenth of the batch's time, so nearly ten in eleven parts compute.
    assertThat(computed * 0.1 / 10).isBetween(0.85, 0.95);

    long quiet = starts.size();
    time.runUntil(time.relativeTimeNanos() + 10 * SECOND);
    assertThat((starts.size() - quiet) * 0.1 / 10).as("without input").isGreaterThan(0.97);
  }
}
