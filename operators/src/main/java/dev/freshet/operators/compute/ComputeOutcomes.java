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

  /**
   * The end of one computation.
   *
   * @param key entity key
   * @param version version that the computation was to make
   * @param succeeded whether there is a value
   * @param computeNanos time of the computation, nanoseconds
   */
  public record Outcome(String key, Version version, boolean succeeded, long computeNanos) {}

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
