package dev.freshet.operators.compute;

import dev.freshet.connectors.record.Version;
import java.util.Queue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ConcurrentMap;

/**
 * The way back from the end of a chain to its head: the scheduler learns here how the computations
 * that it started have ended. Flink's streams flow one way only; the two operators share a task, so
 * they share this board, found by the task's name.
 *
 * <p>Thread-safe.
 */
public final class ComputeOutcomes {

  /** How a computation ended. */
  public enum Ending {
    /** There is a value. */
    COMPUTED,
    /** There is none, and trying the same again would be of no use. */
    FAILED,
    /** Something that the function depends on took no more calls: it is to be tried again later. */
    RATE_LIMITED
  }

  /**
   * The end of one computation.
   *
   * @param key entity key
   * @param version version that the computation was to make
   * @param ending how it ended
   * @param computeNanos time of the computation, nanoseconds
   * @param retryAfterMs when to try again, from now on, milliseconds; 0 unless rate limited
   */
  public record Outcome(
      String key, Version version, Ending ending, long computeNanos, long retryAfterMs) {

    /** A computation that came to an end of its own. */
    public Outcome(String key, Version version, boolean succeeded, long computeNanos) {
      this(key, version, succeeded ? Ending.COMPUTED : Ending.FAILED, computeNanos, 0);
    }

    /** A computation that was put off. */
    public static Outcome rateLimited(String key, Version version, long retryAfterMs) {
      return new Outcome(key, version, Ending.RATE_LIMITED, 0, retryAfterMs);
    }
  }

  private static final ConcurrentMap<String, ComputeOutcomes> BOARDS = new ConcurrentHashMap<>();

  private final Queue<Outcome> queue = new ConcurrentLinkedQueue<>();

  /** The board of a task, made by whoever asks first. */
  public static ComputeOutcomes of(String taskId) {
    return BOARDS.computeIfAbsent(taskId, ignored -> new ComputeOutcomes());
  }

  /** Forgets a task's board. */
  public static void remove(String taskId) {
    BOARDS.remove(taskId);
  }

  /** Tells the scheduler of an outcome. */
  public void report(Outcome outcome) {
    queue.add(outcome);
  }

  /** The next outcome, or null when none is known. */
  public Outcome poll() {
    return queue.poll();
  }
}
