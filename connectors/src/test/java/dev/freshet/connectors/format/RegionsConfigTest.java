package dev.freshet.connectors.format;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.Map;
import org.apache.flink.util.InstantiationUtil;
import org.junit.jupiter.api.Test;

/** The regions' JSON: every field arrives, and every problem is reported at once. */
final class RegionsConfigTest {

  /** As test_config.py's test_what_java_is_told_of_the_regions has it. */
  private static final String JSON =
      """
      {"region": "gcp:us-east1-b", "home_region": "aws:eu-west-1", "role": "destination",
       "inbox_topic": "p.inbox.gcp.us-east1-b",
       "dead_letters_topic": "p.dead-letters.inbox.gcp.us-east1-b",
       "progress_topic": "p.progress",
       "kafka": {"bootstrap.servers": "us:9092", "sasl.jaas.config": "password=secret"},
       "home_kafka": {"bootstrap.servers": "eu:9092", "client.id": "me"},
       "regions": {
         "aws:eu-west-1": {"kafka": {"bootstrap.servers": "eu:9092", "client.id": "me"},
                           "role": "destination", "inbox_topic": "p.inbox.aws.eu-west-1"},
         "aws:us-east-1": {"kafka": {"bootstrap.servers": "us-1:9092"},
                           "role": "waypoint", "inbox_topic": "p.inbox.aws.us-east-1"}},
       "redis": {"url": "redis://cache:6379/0", "cluster": false, "prefix": "",
                 "tombstone_retention_ms": 86400000},
       "start_offsets": "committed-or-earliest",
       "group": "p.freshet-region-gcp:us-east1-b", "uid_prefix": "", "to_come": {}}
      """;

  @Test
  void readsEveryField() throws Exception {
    RegionsConfig config = RegionsConfig.parse(JSON);
    assertThat(config.isHome()).isFalse();
    assertThat(config.role()).isEqualTo(RegionsConfig.DESTINATION);
    assertThat(config.inboxTopic()).isEqualTo("p.inbox.gcp.us-east1-b");
    assertThat(config.deadLettersTopic()).isEqualTo("p.dead-letters.inbox.gcp.us-east1-b");
    assertThat(config.progressTopic()).isEqualTo("p.progress");
    assertThat(config.kafkaProperties()).containsEntry("bootstrap.servers", "us:9092");
    assertThat(config.homeKafkaProperties())
        .isEqualTo(Map.of("bootstrap.servers", "eu:9092", "client.id", "me"));
    assertThat(config.regions()).containsOnlyKeys("aws:eu-west-1", "aws:us-east-1");
    RegionsConfig.Peer waypoint = config.regions().get("aws:us-east-1");
    assertThat(waypoint.role()).isEqualTo(RegionsConfig.WAYPOINT);
    assertThat(waypoint.inboxTopic()).isEqualTo("p.inbox.aws.us-east-1");
    assertThat(waypoint.kafkaProperties()).isEqualTo(Map.of("bootstrap.servers", "us-1:9092"));
    assertThat(config.deployment().redis().url()).isEqualTo("redis://cache:6379/0");
    assertThat(config.deployment().group()).isEqualTo("p.freshet-region-gcp:us-east1-b");
    assertThat(config.toString()).doesNotContain("secret");
    assertThat(InstantiationUtil.clone(config)).isEqualTo(config);
  }

  @Test
  void aWaypointNeedsNoStore() {
    String waypoint =
        "{\"region\": \"a:b\", \"home_region\": \"a:b\", \"role\": \"waypoint\","
            + " \"inbox_topic\": \"i\", \"dead_letters_topic\": \"d\", \"progress_topic\": \"p\","
            + " \"kafka\": {\"bootstrap.servers\": \"k:1\"},"
            + " \"home_kafka\": {\"bootstrap.servers\": \"k:1\"}, \"group\": \"g\"}";
    RegionsConfig config = RegionsConfig.parse(waypoint);
    assertThat(config.isHome()).isTrue();
    assertThat(config.regions()).isEmpty();
    assertThat(config.startOffsets()).isEqualTo(DeploymentConfig.COMMITTED_OR_EARLIEST);
  }

  @Test
  void reportsEveryProblemAtOnce() {
    assertThatThrownBy(
            () ->
                RegionsConfig.parse(
                    "{\"role\": \"destination\", \"start_offsets\": \"yesterday\","
                        + " \"regions\": {\"a:b\": {\"role\": \"satellite\"}, \"c:d\": null}}"))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("14 problem(s)")
        .hasMessageContaining("home_region is missing")
        .hasMessageContaining("inbox_topic is missing")
        .hasMessageContaining("dead_letters_topic is missing")
        .hasMessageContaining("progress_topic is missing")
        .hasMessageContaining("; kafka['bootstrap.servers'] is missing")
        .hasMessageContaining("home_kafka['bootstrap.servers'] is missing")
        .hasMessageContaining("regions['a:b'].kafka['bootstrap.servers'] is missing")
        .hasMessageContaining("regions['a:b'].role is 'satellite'")
        .hasMessageContaining("regions['a:b'].inbox_topic is missing")
        .hasMessageContaining("regions['c:d'] is null")
        .hasMessageContaining("redis is missing; only a region whose role is waypoint")
        .hasMessageContaining("start_offsets is 'yesterday'")
        .hasMessageContaining("group is missing");
  }
}
