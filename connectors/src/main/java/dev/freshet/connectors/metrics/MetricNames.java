package dev.freshet.connectors.metrics;

/**
 * Every metric of Freshet's operators, each with a sentence. A full name is, for example, {@code
 * <host>.taskmanager.<tm_id>.<job>.<operator>.<subtask>.freshet.table.cpu_stl.pendingKeys}.
 */
public final class MetricNames {

  /** Group of all metrics of ours. */
  public static final String GROUP = "freshet";

  /** Sub-group key; its value is the table's name. */
  public static final String TABLE = "table";

  // Feature maintenance.

  /** Gauge: keys with pending data, waiting to be chosen. */
  public static final String PENDING_KEYS = "pendingKeys";

  /** Gauge: keys known to this subtask. */
  public static final String KEYS = "keys";

  /** Counter: keys chosen and handed to the feature function. */
  public static final String UPDATES = "updates";

  /** Counter: computations that failed or timed out. */
  public static final String UPDATES_FAILED = "updatesFailed";

  /** Counter: computations that a rate limit put off. */
  public static final String UPDATES_RATE_LIMITED = "updatesRateLimited";

  /** Gauge: sum of the estimated regret of all keys, in units of the fed-back error. */
  public static final String ESTIMATED_REGRET = "estimatedRegret";

  /** Histogram: time of one key's computation, microseconds. */
  public static final String COMPUTE_TIME_MICROS = "computeTimeMicros";

  /** Gauge: mean over keys of each one's moving average of its computing time, microseconds. */
  public static final String MEAN_KEY_COST_MICROS = "meanKeyCostMicros";

  /**
   * Gauge: what the compute budget has granted since the start, used or not: seconds of computing
   * for a share of the time, updates for the others.
   */
  public static final String BUDGET_GRANTED = "budgetGranted";

  /** Gauge: what of that was spent. */
  public static final String BUDGET_SPENT = "budgetSpent";

  /** Counter: feedback on a key's current version. */
  public static final String FEEDBACK_USED = "feedbackUsed";

  /** Counter: demands for a newer value than there is, of a table that computes on demand. */
  public static final String DEMANDS = "demands";

  /** Counter: demands for keys that have no newer value, or of a table that computes unasked. */
  public static final String DEMANDS_IGNORED = "demandsIgnored";

  /** Counter: feedback on another version or an unknown key. */
  public static final String FEEDBACK_DROPPED = "feedbackDropped";

  /** Counter: events that were in the window already, with the same value. */
  public static final String EVENTS_DUPLICATE = "eventsDuplicate";

  /** Counter: events older than everything that the window keeps. */
  public static final String EVENTS_TOO_LATE = "eventsTooLate";

  // Online store.

  /** Histogram: write time minus event time of each written value, milliseconds. */
  public static final String STALENESS_AT_WRITE_MS = "stalenessAtWriteMs";

  /** Histogram: one batch's round trip to the store, microseconds. */
  public static final String STORE_LATENCY_MICROS = "storeLatencyMicros";

  /** Counter: values written. */
  public static final String WRITES = "writes";

  /** Counter: values that were in the store already, with the same version. */
  public static final String WRITES_DUPLICATE = "writesDuplicate";

  /** Counter: values older than the store's newest, which it keeps beside that. */
  public static final String WRITES_KEPT_AS_OLDER = "writesKeptAsOlder";

  /** Counter: values older than all that the store keeps. */
  public static final String WRITES_STALE = "writesStale";

  /** Counter: batches sent again after a failure. */
  public static final String STORE_RETRIES = "storeRetries";

  /** Counter: values written again after the store lost data. */
  public static final String WRITES_RESTORED = "writesRestored";

  // Regions.

  /** Sub-group key; its value is the region at the link's other end. */
  public static final String LINK = "link";

  /** Sub-group key; its value is a region that home sends to. */
  public static final String REGION = "region";

  /**
   * Gauge: time since all that home had read of a table was in the region's store, milliseconds.
   */
  public static final String BEHIND_MS = "behindMs";

  /** Counter: live changes from other regions that the store took. */
  public static final String CHANGES_APPLIED = "changesApplied";

  /** Counter: changes of catch-up that the store took. */
  public static final String CHANGES_CAUGHT_UP = "changesCaughtUp";

  /** Counter: changes from other regions that found a newer or the same version in the store. */
  public static final String CHANGES_SUPERSEDED = "changesSuperseded";

  /** Counter: changes that were not applied because the store did not answer; home sends them. */
  public static final String CHANGES_SKIPPED = "changesSkipped";

  /** Histogram: time of applying less event time, live changes, milliseconds of home's clock. */
  public static final String FRESHNESS_MS = "freshnessMs";

  /**
   * Histogram: time of applying less computing time, live changes, milliseconds of home's clock.
   */
  public static final String DELAY_MS = "delayMs";

  /** Gauge: the table's freshness SLO, milliseconds; 0 if it is not known. */
  public static final String SLO_MS = "sloMs";

  /** Counter: live changes that were applied after their deadline. */
  public static final String SLO_VIOLATIONS = "sloViolations";

  /** Counter: chunks that were damaged, or for another region; of all tables. */
  public static final String CHUNKS_REFUSED = "chunksRefused";

  /** Gauge: keys with a change that is not sent on a link. */
  public static final String BACKLOG_KEYS = "backlogKeys";

  /** Gauge: size of the chunks that a link has delivered, bytes. */
  public static final String WIRE_BYTES = "wireBytes";

  /** Gauge: size of their changes before compression, bytes. */
  public static final String RAW_BYTES = "rawBytes";

  /** Counter: unsent changes that were given up because a link's other end did not answer. */
  public static final String RELAY_KEYS_DROPPED = "relayKeysDropped";

  // Planning.

  /** Gauge: time since the plan in force was made, milliseconds; 0 before the first. */
  public static final String PLAN_AGE_MS = "planAgeMs";

  // Ingestion.

  /** Counter: inputs sent to the dead-letter topic. */
  public static final String DEAD_LETTERS = "deadLetters";

  private MetricNames() {}
}
