package dev.freshet.connectors.format;

import com.fasterxml.jackson.annotation.JsonProperty;
import java.io.Serializable;
import java.util.LinkedHashMap;
import java.util.Properties;
import org.apache.kafka.clients.CommonClientConfigs;

/**
 * Where a job runs: its Kafka, its Redis and its region.
 *
 * @param kafka client properties; {@code bootstrap.servers} is required
 * @param redis the region's online store
 * @param region {@code provider:region}
 * @param startOffsets {@link #COMMITTED_OR_EARLIEST}, {@link #EARLIEST} or {@link #LATEST}
 * @param group Kafka consumer group
 * @param uidPrefix goes before the uid of every operator, to tell apart the tables of a job that
 *     maintains several; empty in a job of one table
 */
public record DeploymentConfig(
    LinkedHashMap<String, Object> kafka,
    Redis redis,
    String region,
    String startOffsets,
    String group,
    String uidPrefix)
    implements Serializable {

  private static final long serialVersionUID = 1L;

  public static final String COMMITTED_OR_EARLIEST = "committed-or-earliest";
  public static final String EARLIEST = "earliest";
  public static final String LATEST = "latest";

  public DeploymentConfig {
    startOffsets = startOffsets == null ? COMMITTED_OR_EARLIEST : startOffsets;
    uidPrefix = uidPrefix == null ? "" : uidPrefix;
  }

  /**
   * Parses and checks the JSON.
   *
   * @throws IllegalArgumentException naming every field that is missing or out of range
   */
  public static DeploymentConfig parse(String deploymentJson) {
    DeploymentConfig config =
        ConfigJson.read("the deployment's configuration", deploymentJson, DeploymentConfig.class);
    config.sanityCheck();
    return config;
  }

  private void sanityCheck() {
    Problems problems = new Problems("the deployment's configuration");
    KafkaProperties.sanityCheck(kafka, "kafka", problems);
    problems.require(redis != null, "redis is missing");
    if (redis != null) {
      redis.sanityCheck(problems);
    }
    problems.requireText(region, "region");
    problems.requireText(group, "group");
    requireStartOffsets(startOffsets, problems);
    problems.check();
  }

  static void requireStartOffsets(String startOffsets, Problems problems) {
    problems.require(
        startOffsets.equals(COMMITTED_OR_EARLIEST)
            || startOffsets.equals(EARLIEST)
            || startOffsets.equals(LATEST),
        "start_offsets is '"
            + startOffsets
            + "'; it must be committed-or-earliest, earliest or latest");
  }

  /** The uid of an operator: its state finds its way back from a savepoint by it. */
  public String uid(String operator) {
    return uidPrefix + operator;
  }

  /** The addresses of the Kafka brokers. */
  public String bootstrapServers() {
    return String.valueOf(kafka.get(CommonClientConfigs.BOOTSTRAP_SERVERS_CONFIG));
  }

  /** All Kafka client properties, as text. */
  public Properties kafkaProperties() {
    return KafkaProperties.of(kafka);
  }

  /** Leaves out the properties, which may hold passwords. */
  @Override
  public String toString() {
    return "DeploymentConfig[region=" + region + ", group=" + group + "]";
  }

  /**
   * A region's online store.
   *
   * @param url {@code redis://} or {@code rediss://}; of a cluster, some of its nodes, separated by
   *     commas; its secrets are references, see {@link dev.freshet.connectors.secret.Secrets}
   * @param cluster whether it is a Redis Cluster
   * @param ca PEM file of the authorities that vouch for its certificates; null for Java's
   * @param certificate PEM file of the certificate that is shown to it; null for none
   * @param key PEM file of that certificate's private key; null for none
   * @param prefix of every key
   * @param tombstoneRetentionMs how long a deleted key's tombstone stays
   */
  public record Redis(
      String url,
      boolean cluster,
      String ca,
      String certificate,
      String key,
      String prefix,
      @JsonProperty("tombstone_retention_ms") long tombstoneRetentionMs)
      implements Serializable {

    private static final long serialVersionUID = 1L;

    /** Long enough that a write delayed by a day-long outage cannot resurrect a deleted key. */
    public static final long DEFAULT_TOMBSTONE_RETENTION_MS = 86_400_000;

    public Redis {
      prefix = prefix == null ? "" : prefix;
      tombstoneRetentionMs =
          tombstoneRetentionMs == 0 ? DEFAULT_TOMBSTONE_RETENTION_MS : tombstoneRetentionMs;
    }

    /** Leaves out the URL, which may hold a password. */
    @Override
    public String toString() {
      return "Redis[cluster=" + cluster + ", prefix=" + prefix + "]";
    }

    void sanityCheck(Problems problems) {
      problems.requireText(url, "redis.url");
      problems.require(
          (certificate == null) == (key == null),
          "redis.certificate and redis.key must be given together");
      problems.requireAtLeast(tombstoneRetentionMs, 1, "redis.tombstone_retention_ms");
    }
  }
}
