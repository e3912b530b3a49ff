package dev.freshet.operators.scheduling;

import dev.freshet.connectors.record.Version;

/**
 * What the scheduler knows of one key beside its raw window: the record from which every policy
 * scores it (RALF §2.4.3). Mutable, because it changes with every event; {@link
 * KeyRecordSerializer} copies it deeply.
 *
 * <p>Times are event times in epoch milliseconds unless a name says otherwise.
 */
public final class KeyRecord {

  /** Value of a time field that is not set. */
  static final long NO_TIME = Long.MIN_VALUE;

  // The value in the store.
  long versionTimestamp;
  int versionOrigin;
  long asOf = NO_TIME;
  long updates;

  // Since the current version.
  double regret;
  long errors;
  long queries;

  // Data that the current version does not contain.
  long pending;
  long oldestPending = Long.MAX_VALUE;

  // The computation under way; its timestamp is 0 when there is none.
  long inFlightTimestamp;
  long inFlightAsOf = NO_TIME;
  long inFlightPending;

  // Scheduling.
  long lastChosenTimestamp;
  int failures;
  long retryAt = NO_TIME;

  // The window's list state.
  int entries;
  int trimAt;
  long newest = NO_TIME;
  long trimmedThrough = NO_TIME;

  /** Version of the value in the store; {@link Version#NONE} before the first. */
  public Version version() {
    return new Version(versionTimestamp, versionOrigin);
  }

  /** Whether the key has a value in the store. */
  public boolean hasValue() {
    return versionTimestamp != 0;
  }

  /** Sum of the errors fed back on the current version, in units of the error. */
  public double regret() {
    return regret;
  }

  /** Number of events that the current version does not contain. */
  public long pending() {
    return pending;
  }

  /** Event time of the oldest pending event; {@link Long#MAX_VALUE} when none is pending. */
  public long oldestPending() {
    return oldestPending;
  }

  /** Labelled feedback on the current version. */
  public long errors() {
    return errors;
  }

  /** Feedback on the current version, labelled or not. */
  public long queries() {
    return queries;
  }

  /** Completed computations. */
  public long updates() {
    return updates;
  }

  /** Version timestamp at which the key was last chosen, microseconds; 0 before the first. */
  public long lastChosenTimestamp() {
    return lastChosenTimestamp;
  }

  /** Whether a computation is under way. */
  public boolean isInFlight() {
    return inFlightTimestamp != 0;
  }

  /** Counts an event that the current version does not contain. */
  void eventPending(long timestamp) {
    pending++;
    oldestPending = Math.min(oldestPending, timestamp);
  }

  /** Adds labelled or unlabelled feedback on the current version. */
  void feedback(double error) {
    queries++;
    if (!Double.isNaN(error)) {
      errors++;
      regret += error;
    }
  }

  /**
   * Moves the key into computation: its pending data is cleared (RALF §2.4.3), and kept aside until
   * the outcome is known. Feedback is on the version that is still served, so it goes with that.
   */
  void startComputation(long timestamp, long newAsOf, long stillPending, long oldestStillPending) {
    inFlightTimestamp = timestamp;
    inFlightAsOf = newAsOf;
    inFlightPending = pending - stillPending;
    lastChosenTimestamp = timestamp;
    pending = stillPending;
    oldestPending = stillPending == 0 ? Long.MAX_VALUE : oldestStillPending;
  }

  /** The computation's value went on to the store: it is the current version, without feedback. */
  void completeComputation(int origin) {
    versionTimestamp = inFlightTimestamp;
    versionOrigin = origin;
    asOf = inFlightAsOf;
    updates++;
    regret = 0;
    errors = 0;
    queries = 0;
    failures = 0;
    retryAt = NO_TIME;
    clearInFlight();
  }

  /**
   * The computation failed: the last good value and its feedback stay. Its data is not pending
   * again, so that one bad event costs one computation; new data makes the key eligible again.
   */
  void failComputation(long notBefore) {
    failures++;
    retryAt = notBefore;
    clearInFlight();
  }

  /**
   * A computation under way was lost with a failure of the job: the key is pending as before it.
   *
   * @return whether there was one
   */
  boolean loseComputation() {
    if (!isInFlight()) {
      return false;
    }
    pending += inFlightPending;
    oldestPending = Math.min(oldestPending, inFlightAsOf);
    clearInFlight();
    return true;
  }

  private void clearInFlight() {
    inFlightTimestamp = 0;
    inFlightAsOf = NO_TIME;
    inFlightPending = 0;
  }
}
