package dev.freshet.connectors.format;

import dev.freshet.connectors.format.DeploymentConfig.Redis;
import java.io.Serializable;
import java.util.LinkedHashMap;
import java.util.Objects;
import java.util.Properties;

/**
 * What the jobs that take changes to regions know of the deployment, as the Python side writes it
 * ({@code config.dissemination_dict()}). Topic names carry the topic prefix already.
 *
 * @param region that the job runs in, {@code provider:region}
 * @param homeRegion where tables are computed and sent from
 * @param role {@link #DESTINATION} or {@link #WAYPOINT}
 * @param inboxTopic topic of what other regions send to this one, on its own broker
 * @param deadLettersTopic topic of what could not be used of it, on its own broker
 * @param progressTopic topic of reports, on home's broker
 * @param kafka client properties of the region's own broker
 * @param homeKafka client properties of home's broker, as reached from here
 * @param regions the other regions
 * @param redis the region's online store; null if a waypoint has none
 * @param startOffsets where the inbox is read from without a checkpoint, as in {@link
 *     DeploymentConfig}
 * @param group Kafka consumer group
 * @param uidPrefix goes before the uid of every operator
 */
public record RegionsConfig(
    String region,
    String homeRegion,
    String role,
    String inboxTopic,
    String deadLettersTopic,
    String progressTopic,
    LinkedHashMap<String, Object> kafka,
    LinkedHashMap<String, Object> homeKafka,
    LinkedHashMap<String, Peer> regions,
    Redis redis,
    String startOffsets,
    String group,
    String uidPrefix)
    implements Serializable {

  private static final long serialVersionUID = 1L;

  /** Keeps tables in its online store. */
  public static final String DESTINATION = "destination";

  /** Has no online store and only sends on. */
  public static final String WAYPOINT = "waypoint";

  public RegionsConfig {
    regions = regions == null ? new LinkedHashMap<>() : regions;
    startOffsets = startOffsets == null ? DeploymentConfig.COMMITTED_OR_EARLIEST : startOffsets;
    uidPrefix = uidPrefix == null ? "" : uidPrefix;
  }

  /**
   * Parses and checks the JSON.
   *
   * @throws IllegalArgumentException naming every field that is missing or out of range
   */
  public static RegionsConfig parse(String regionsJson) {
    RegionsConfig config =
        ConfigJson.read("the regions' configuration", regionsJson, RegionsConfig.class);
    config.sanityCheck();
    return config;
  }

  private void sanityCheck() {
    Problems problems = new Problems("the regions' configuration");
    problems.requireText(region, "region");
    problems.requireText(homeRegion, "home_region");
    requireRole(role, "role", problems);
    problems.requireText(inboxTopic, "inbox_topic");
    problems.requireText(deadLettersTopic, "dead_letters_topic");
    problems.requireText(progressTopic, "progress_topic");
    KafkaProperties.sanityCheck(kafka, "kafka", problems);
    KafkaProperties.sanityCheck(homeKafka, "home_kafka", problems);
    regions.forEach((name, peer) -> requirePeer(name, peer, problems));
    problems.require(
        redis != null || WAYPOINT.equals(role),
        "redis is missing; only a region whose role is waypoint has none");
    if (redis != null) {
      redis.sanityCheck(problems);
    }
    DeploymentConfig.requireStartOffsets(startOffsets, problems);
    problems.requireText(group, "group");
    problems.check();
  }

  private static void requirePeer(String name, Peer peer, Problems problems) {
    String field = "regions['" + name + "']";
    problems.require(peer != null, field + " is null; it must be an object");
    if (peer != null) {
      KafkaProperties.sanityCheck(peer.kafka, field + ".kafka", problems);
      requireRole(peer.role, field + ".role", problems);
      problems.requireText(peer.inboxTopic, field + ".inbox_topic");
    }
  }

  private static void requireRole(String role, String field, Problems problems) {
    problems.require(
        DESTINATION.equals(role) || WAYPOINT.equals(role),
        field + " is '" + role + "'; it must be destination or waypoint");
  }

  /** Whether the job runs in the home region. */
  public boolean isHome() {
    return Objects.equals(region, homeRegion);
  }

  /** All client properties of the region's own broker, as text. */
  public Properties kafkaProperties() {
    return KafkaProperties.of(kafka);
  }

  /** All client properties of home's broker, as text. */
  public Properties homeKafkaProperties() {
    return KafkaProperties.of(homeKafka);
  }

  /** The uid of an operator: its state finds its way back from a savepoint by it. */
  public String uid(String operator) {
    return uidPrefix + operator;
  }

  /** The same deployment as the operators of a single region see it. */
  public DeploymentConfig deployment() {
    return new DeploymentConfig(kafka, redis, region, startOffsets, group, uidPrefix);
  }

  /** Leaves out the properties, which may hold passwords. */
  @Override
  public String toString() {
    return "RegionsConfig[region="
        + region
        + ", homeRegion="
        + homeRegion
        + ", role="
        + role
        + ", regions="
        + regions.keySet()
        + "]";
  }

  /**
   * Another region.
   *
   * @param kafka client properties of its broker, as reached from here
   * @param role {@link #DESTINATION} or {@link #WAYPOINT}
   * @param inboxTopic topic of what is sent to it, on its broker
   */
  public record Peer(LinkedHashMap<String, Object> kafka, String role, String inboxTopic)
      implements Serializable {

    private static final long serialVersionUID = 1L;

    /** All client properties of its broker, as text. */
    public Properties kafkaProperties() {
      return KafkaProperties.of(kafka);
    }

    /** Leaves out the properties, which may hold passwords. */
    @Override
    public String toString() {
      return "Peer[role=" + role + ", inboxTopic=" + inboxTopic + "]";
    }
  }
}
