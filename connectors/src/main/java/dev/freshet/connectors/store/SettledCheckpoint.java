package dev.freshet.connectors.store;

/**
 * Tells when every change that any subtask emitted before a moment is in Kafka.
 *
 * <p>A Kafka sink writes out its buffer in each checkpoint. The first checkpoint that starts here
 * after the moment may have passed another subtask before it, so its completion proves nothing
 * about that subtask's later changes. Once it has completed, though, the next one passes every
 * subtask after the moment, and its completion is the proof.
 */
final class SettledCheckpoint {

  private static final long NONE = -1;

  private long first = NONE;
  private boolean firstCompleted;
  private long second = NONE;

  /** This subtask took its snapshot. */
  void started(long checkpointId) {
    if (first == NONE) {
      first = checkpointId;
    } else if (firstCompleted && second == NONE) {
      second = checkpointId;
    }
  }

  /**
   * A checkpoint completed; a later one stands in for those before it.
   *
   * @return whether the changes are in Kafka
   */
  boolean completed(long checkpointId) {
    if (first != NONE && checkpointId >= first) {
      firstCompleted = true;
    }
    return second != NONE && checkpointId >= second;
  }
}
