package dev.freshet.connectors.format;

import com.fasterxml.jackson.annotation.JsonProperty;
import dev.freshet.connectors.record.ValueKind;
import java.io.Serializable;
import java.util.List;

/**
 * A feature table as the Python side writes it ({@code table.to_dict()}). Durations are in
 * milliseconds, topic names carry the topic prefix already.
 *
 * @param table name of the table
 * @param origin second part of every version that this job assigns, 0 to 65535
 * @param source where events come from
 * @param feedbackTopic topic of the models' feedback
 * @param changesTopic topic of change events, the log that the online store can be rebuilt from
 * @param deadLettersTopic topic of inputs that could not be used
 * @param progressTopic topic of progress records
 * @param window what a computation sees
 * @param minPoints fewest points that a computation needs
 * @param policy name of the scheduling policy
 * @param policySeed seed of a policy with chance in it
 * @param defaultRegret regret per pending event, in units of the fed-back error
 * @param maxRegret cap of a key's regret
 * @param missingRegret regret of a key that has no value yet; null for the cap
 * @param keepVersions versions of a value that the online store keeps, the newest included
 * @param onDemand what readers wait for, when keys are computed only for those who read them; null
 *     when they are computed unasked
 * @param budget how much may be computed
 * @param freshnessSloMs freshness objective
 * @param regions regions that hold the table, each {@code provider:region}
 * @param priorityWeight factor of its changes' priority on a link that is behind; 1 if absent
 * @param ttlMs read-side time to live; null for none
 * @param outOfOrdernessMs how late an event may be before the watermark passes it
 * @param idleTimeoutMs after which a silent partition no longer holds back the watermark; null to
 *     wait for ever
 * @param maxFutureMs how far ahead of the wall clock a timestamp may be
 * @param functionTimeoutMs after which a computation is given up
 * @param bundleTargetMs how long one bundle of computations should take
 * @param bundleMaxKeys most keys in one bundle
 * @param maxValueBytes largest packed feature value
 * @param parallelism subtasks of each operator
 * @param maxParallelism key groups
 */
public record TableConfig(
    String table,
    int origin,
    Source source,
    String feedbackTopic,
    String changesTopic,
    String deadLettersTopic,
    String progressTopic,
    Window window,
    int minPoints,
    String policy,
    long policySeed,
    double defaultRegret,
    double maxRegret,
    Double missingRegret,
    int keepVersions,
    OnDemand onDemand,
    Budget budget,
    long freshnessSloMs,
    List<String> regions,
    Double priorityWeight,
    Long ttlMs,
    long outOfOrdernessMs,
    Long idleTimeoutMs,
    long maxFutureMs,
    long functionTimeoutMs,
    long bundleTargetMs,
    int bundleMaxKeys,
    int maxValueBytes,
    int parallelism,
    int maxParallelism)
    implements Serializable {

  private static final long serialVersionUID = 1L;

  /** Largest {@code origin}: it is stored in 16 bits. */
  public static final int MAX_ORIGIN = 0xFFFF;

  /** Most {@code keepVersions}. */
  public static final int MAX_KEEP_VERSIONS = 8;

  public TableConfig {
    // A definition that an older release registered has none.
    priorityWeight = priorityWeight == null ? 1.0 : priorityWeight;
  }

  /**
   * Parses and checks the JSON.
   *
   * @throws IllegalArgumentException naming every field that is missing or out of range
   */
  public static TableConfig parse(String tableJson) {
    TableConfig config = ConfigJson.read("the table's configuration", tableJson, TableConfig.class);
    config.sanityCheck();
    return config;
  }

  private void sanityCheck() {
    Problems problems = new Problems("the configuration of table '" + table + "'");
    problems.requireText(table, "table");
    problems.require(
        origin >= 0 && origin <= MAX_ORIGIN, "origin is " + origin + "; it must be 0 to 65535");
    problems.requireText(feedbackTopic, "feedback_topic");
    problems.requireText(changesTopic, "changes_topic");
    problems.requireText(deadLettersTopic, "dead_letters_topic");
    problems.requireText(progressTopic, "progress_topic");
    problems.require(source != null, "source is missing");
    if (source != null) {
      source.sanityCheck(problems);
    }
    problems.require(window != null, "window is missing");
    if (window != null) {
      window.sanityCheck(problems);
    }
    problems.require(budget != null, "budget is missing");
    if (budget != null) {
      budget.sanityCheck(problems);
    }
    if (onDemand != null) {
      onDemand.sanityCheck(problems);
    }
    problems.requireAtLeast(outOfOrdernessMs, 0, "out_of_orderness_ms");
    problems.requireAtLeast(maxFutureMs, 0, "max_future_ms");
    problems.require(
        idleTimeoutMs == null || idleTimeoutMs > 0,
        "idle_timeout_ms is " + idleTimeoutMs + "; it must be positive, or null to wait for ever");
    problems.require(
        ttlMs == null || ttlMs > 0,
        "ttl_ms is " + ttlMs + "; it must be positive, or null for no expiry");
    problems.require(
        missingRegret == null || missingRegret >= 0,
        "missing_regret is " + missingRegret + "; it must be at least 0, or null for the cap");
    problems.require(
        keepVersions >= 1 && keepVersions <= MAX_KEEP_VERSIONS,
        "keep_versions is " + keepVersions + "; it must be 1 to " + MAX_KEEP_VERSIONS);
    problems.require(
        priorityWeight >= 0 && Double.isFinite(priorityWeight),
        "priority_weight is " + priorityWeight + "; it must be finite and at least 0");
    problems.requireAtLeast(maxValueBytes, 1, "max_value_bytes");
    problems.requireAtLeast(parallelism, 1, "parallelism");
    problems.require(
        maxParallelism >= parallelism,
        "max_parallelism is "
            + maxParallelism
            + "; it must be at least parallelism, "
            + parallelism);
    problems.check();
  }

  /**
   * Where events come from, and the names of their fields.
   *
   * @param topic Kafka topic
   * @param key field of the entity key
   * @param timestamp field of the event time, epoch milliseconds
   * @param value field of the value
   * @param id field that tells apart events of a key in one millisecond; null for none
   * @param kind {@code scalar}, {@code vector} or {@code json}
   * @param maxEventBytes largest record value that is read
   */
  public record Source(
      String topic,
      String key,
      String timestamp,
      String value,
      String id,
      String kind,
      int maxEventBytes)
      implements Serializable {

    private static final long serialVersionUID = 1L;

    /** How the value is encoded in an {@link dev.freshet.connectors.record.Event}. */
    public ValueKind valueKind() {
      return switch (kind) {
        case "scalar" -> ValueKind.SCALAR;
        case "vector" -> ValueKind.VECTOR;
        case "json" -> ValueKind.JSON;
        default ->
            throw new IllegalArgumentException(
                "source.kind is '" + kind + "'; it must be scalar, vector or json");
      };
    }

    private void sanityCheck(Problems problems) {
      problems.requireText(topic, "source.topic");
      problems.requireText(key, "source.key");
      problems.requireText(timestamp, "source.timestamp");
      problems.requireText(value, "source.value");
      problems.require(
          "scalar".equals(kind) || "vector".equals(kind) || "json".equals(kind),
          "source.kind is '" + kind + "'; it must be scalar, vector or json");
      problems.require(
          value == null || (!value.equals(key) && !value.equals(timestamp) && !value.equals(id)),
          "source.value is '" + value + "', which another role uses too; give it its own field");
      problems.requireAtLeast(maxEventBytes, 1, "source.max_event_bytes");
    }
  }

  /**
   * What a computation sees: the last points, or the last stretch of event time. Exactly one is
   * given.
   *
   * @param points number of events; null for a window of time
   * @param durationMs length in event time, milliseconds; null for a window of points
   */
  public record Window(Integer points, Long durationMs) implements Serializable {

    private static final long serialVersionUID = 1L;

    private void sanityCheck(Problems problems) {
      problems.require(
          (points == null) != (durationMs == null),
          "window must have exactly one of points and duration_ms");
      problems.require(points == null || points > 0, "window.points must be positive");
      problems.require(durationMs == null || durationMs > 0, "window.duration_ms must be positive");
    }
  }

  /**
   * When a reader asks for a newer value, and how long it waits for it.
   *
   * @param maxStalenessMs event-time staleness from which on a reader asks
   * @param maxWaitMs how long it waits before it takes what there is
   */
  public record OnDemand(long maxStalenessMs, long maxWaitMs) implements Serializable {

    private static final long serialVersionUID = 1L;

    private void sanityCheck(Problems problems) {
      problems.requireAtLeast(maxStalenessMs, 0, "on_demand.max_staleness_ms");
      problems.requireAtLeast(maxWaitMs, 1, "on_demand.max_wait_ms");
    }
  }

  /**
   * How much may be computed; the kind says which of the other fields hold.
   *
   * @param kind {@code time-share}, {@code rate} or {@code event-time-step}
   * @param share share of the subtask's time, 0 to 1; time-share only
   * @param updatesPerSecond of the whole table; rate only
   * @param burst most updates at once after a time without any, of the whole table; null for one
   *     second's worth; rate only
   * @param updatesPerStep updates in each step of event time; event-time-step only
   * @param stepMs length of a step of event time, milliseconds; event-time-step only
   * @param initialUpdates updates granted once, at the start; event-time-step only
   */
  public record Budget(
      String kind,
      double share,
      double updatesPerSecond,
      Double burst,
      double updatesPerStep,
      @JsonProperty("step_ms") long stepMs,
      double initialUpdates)
      implements Serializable {

    private static final long serialVersionUID = 1L;

    public static final String TIME_SHARE = "time-share";
    public static final String RATE = "rate";
    public static final String EVENT_TIME_STEP = "event-time-step";

    private void sanityCheck(Problems problems) {
      switch (kind == null ? "" : kind) {
        case TIME_SHARE ->
            problems.require(
                share > 0 && share <= 1, "budget.share is " + share + "; it must be in (0, 1]");
        case RATE -> {
          problems.require(
              updatesPerSecond > 0,
              "budget.updates_per_second is " + updatesPerSecond + "; it must be positive");
          problems.require(
              burst == null || burst >= 1,
              "budget.burst is " + burst + "; it must be at least 1, or null");
        }
        case EVENT_TIME_STEP -> {
          problems.require(
              updatesPerStep > 0,
              "budget.updates_per_step is " + updatesPerStep + "; it must be positive");
          problems.requireAtLeast(stepMs, 1, "budget.step_ms");
          problems.require(
              initialUpdates >= 0,
              "budget.initial_updates is " + initialUpdates + "; it must be at least 0");
        }
        default ->
            problems.require(
                false,
                "budget.kind is '" + kind + "'; it must be time-share, rate or event-time-step");
      }
    }
  }
}
