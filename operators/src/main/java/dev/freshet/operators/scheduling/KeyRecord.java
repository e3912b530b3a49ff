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

  private static final long MICROS_PER_MS = 1_000;

  // The value in the store.
  long versionTimestamp;
  int versionOrigin;
  long asOf = NO_TIME;
  long updates;

  // Since the current version.
  double regret;
  long errors;
  long queries;
  long baselineStep = NO_TIME;
  double baselineRegret;
  int baselineErrors;
  double recentError;

  // Data that the current version does not contain.
  long pending;
  long oldestPending = Long.MAX_VALUE;

  // The computation under way; its timestamp is 0 when there is none.
  long inFlightTimestamp;
  long inFlightAsOf = NO_TIME;
  long inFlightPending;
  long inFlightDemandedAt = NO_TIME;

  // Over the key's life.
  long incorporated;
  double costNanos = Double.NaN;

  // Scheduling.
  long lastChosenTimestamp;
  long demandedAt = NO_TIME;
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

  /**
   * Mean error of the first round of labelled feedback on the current version, in which it was as
   * fresh as it ever is (RALF §2.3.3, eq. 2.10: the errors at t_u); NaN before the first. A round
   * is a step of event time; on the wall clock it is one labelled query.
   */
  public double baselineError() {
    return baselineErrors == 0 ? Double.NaN : baselineRegret / baselineErrors;
  }

  /** Completed computations. */
  public long updates() {
    return updates;
  }

  /** Events that computations have taken in over the key's life, failed computations included. */
  public long incorporated() {
    return incorporated;
  }

  /** Moving average of the time that a computation of the key takes, nanoseconds; NaN if none. */
  public double costNanos() {
    return costNanos;
  }

  /**
   * Moving average of the errors fed back on the current version, in units of the error: the mean
   * of the first few, then one in which the newest weighs {@link MovingAverage#WEIGHT}; 0 without
   * labelled feedback.
   */
  public double recentError() {
    return recentError;
  }

  /** Event time of the newest event that the value contains; {@link #NO_TIME} without a value. */
  public long asOf() {
    return asOf;
  }

  /** Version timestamp at which the key was last chosen, microseconds; 0 before the first. */
  public long lastChosenTimestamp() {
    return lastChosenTimestamp;
  }

  /**
   * When the key was last chosen, epoch milliseconds on the versions' clock; 0 before the first.
   */
  public long lastChosenMs() {
    return lastChosenTimestamp / MICROS_PER_MS;
  }

  /** Whether someone has waited to read the key since its last computation began. */
  public boolean isDemanded() {
    return demandedAt != NO_TIME;
  }

  /** When the first of them began to wait, milliseconds; {@link #NO_TIME} when nobody does. */
  public long demandedAt() {
    return demandedAt;
  }

  /** Whether the key has had an event, so that there is something to compute a value from. */
  boolean hasEvents() {
    return pending > 0 || incorporated > 0 || hasValue();
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

  /**
   * Someone waits for a newer value of the key.
   *
   * @param at milliseconds
   * @return whether there can be one: the value, or the computation under way, lacks an event
   */
  boolean demand(long at) {
    if (pending == 0) {
      return false;
    }
    demandedAt = isDemanded() ? Math.min(demandedAt, at) : at;
    return true;
  }

  /**
   * Adds feedback on the current version.
   *
   * @param round what the feedback is counted with for {@link #baselineError}
   */
  void feedback(QueryFeedback feedback, long round) {
    queries++;
    if (feedback.isLabelled()) {
      labelled(feedback.error(), round);
    }
  }

  private void labelled(double error, long round) {
    if (errors == 0) {
      baselineStep = round;
    }
    if (baselineStep == round) {
      baselineErrors++;
      baselineRegret += error;
    }
    errors++;
    regret += error;
    recentError += Math.max(MovingAverage.WEIGHT, 1.0 / errors) * (error - recentError);
  }

  /** Takes in what a computation of the key took, nanoseconds. */
  void computed(long nanos) {
    costNanos = MovingAverage.next(costNanos, nanos);
  }

  /**
   * Moves the key into computation: its pending data is cleared (RALF §2.4.3), and kept aside until
   * the outcome is known. Feedback is on the version that is still served, so it goes with that.
   */
  void startComputation(long timestamp, long newAsOf, long stillPending, long oldestStillPending) {
    inFlightTimestamp = timestamp;
    inFlightAsOf = newAsOf;
    inFlightPending = pending - stillPending;
    inFlightDemandedAt = demandedAt;
    demandedAt = NO_TIME;
    incorporated += inFlightPending;
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
    forgetFeedback();
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
   * A computation under way came to nothing, for no reason of its own: it was lost with a failure
   * of the job, or put off by a rate limit. The key is pending as before it.
   *
   * @return whether there was one
   */
  boolean undoComputation() {
    if (!isInFlight()) {
      return false;
    }
    pending += inFlightPending;
    incorporated -= inFlightPending;
    oldestPending = Math.min(oldestPending, inFlightAsOf);
    // Whoever asked for it asked before those who ask now.
    demandedAt = inFlightDemandedAt == NO_TIME ? demandedAt : inFlightDemandedAt;
    clearInFlight();
    return true;
  }

  private void forgetFeedback() {
    regret = 0;
    errors = 0;
    queries = 0;
    baselineStep = NO_TIME;
    baselineRegret = 0;
    baselineErrors = 0;
    recentError = 0;
  }

  private void clearInFlight() {
    inFlightTimestamp = 0;
    inFlightAsOf = NO_TIME;
    inFlightPending = 0;
    inFlightDemandedAt = NO_TIME;
  }
}
