package dev.freshet.connectors.format;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.freshet.connectors.record.ValueKind;
import dev.freshet.connectors.testing.TestConfigs;
import org.apache.flink.util.InstantiationUtil;
import org.junit.jupiter.api.Test;

/** The two JSON configurations: every field arrives, and every problem is reported at once. */
final class ConfigsTest {

  @Test
  void readsEveryFieldOfATable() throws Exception {
    TableConfig config =
        TableConfig.parse(
            TestConfigs.table(
                "\"table\"",
                "\"to_come\": {}, \"table\"",
                "{\"kind\": \"time-share\", \"share\": 0.5}",
                "{\"kind\": \"event-time-step\", \"updates_per_step\": 1.29, \"step_ms\": 3600000}"));
    assertThat(config.table()).isEqualTo("cpu_stl");
    assertThat(config.origin()).isEqualTo(1);
    assertThat(config.source().topic()).isEqualTo("events.cpu_stl");
    assertThat(config.source().timestamp()).isEqualTo("ts");
    assertThat(config.source().id()).isNull();
    assertThat(config.source().valueKind()).isEqualTo(ValueKind.SCALAR);
    assertThat(config.source().maxEventBytes()).isEqualTo(1 << 20);
    assertThat(config.feedbackTopic()).isEqualTo("feedback.cpu_stl");
    assertThat(config.changesTopic()).isEqualTo("changes.cpu_stl");
    assertThat(config.deadLettersTopic()).isEqualTo("dead-letters.cpu_stl");
    assertThat(config.progressTopic()).isEqualTo("progress");
    assertThat(config.window().points()).isEqualTo(864);
    assertThat(config.window().durationMs()).isNull();
    assertThat(config.minPoints()).isEqualTo(864);
    assertThat(config.policy()).isEqualTo("regret-proportional");
    assertThat(config.defaultRegret()).isEqualTo(1e-6);
    assertThat(config.policySeed()).isZero();
    assertThat(config.maxRegret()).isEqualTo(1e12);
    assertThat(config.missingRegret()).isNull();
    assertThat(config.keepVersions()).isEqualTo(1);
    assertThat(config.onDemand()).isNull();
    assertThat(config.budget().updatesPerStep()).isEqualTo(1.29);
    assertThat(config.budget().stepMs()).isEqualTo(3_600_000);
    assertThat(config.freshnessSloMs()).isEqualTo(300_000);
    assertThat(config.regions()).containsExactly("local:home");
    assertThat(config.priorityWeight()).isEqualTo(1.0);
    assertThat(config.ttlMs()).isNull();
    assertThat(config.idleTimeoutMs()).isEqualTo(5_000);
    assertThat(config.maxFutureMs()).isEqualTo(86_400_000);
    assertThat(config.functionTimeoutMs()).isEqualTo(30_000);
    assertThat(config.bundleTargetMs()).isEqualTo(50);
    assertThat(config.bundleMaxKeys()).isEqualTo(256);
    assertThat(config.maxValueBytes()).isEqualTo(1 << 20);
    assertThat(config.maxParallelism()).isEqualTo(128);
    assertThat(InstantiationUtil.clone(config)).isEqualTo(config);
  }

  @Test
  void readsWhatReadersWaitFor() {
    String asked = "\"on_demand\": {\"max_staleness_ms\": 300000, \"max_wait_ms\": 500}";
    assertThat(TableConfig.parse(TestConfigs.table("\"on_demand\": null", asked)).onDemand())
        .isEqualTo(new TableConfig.OnDemand(300_000, 500));
    assertThatThrownBy(
            () -> TableConfig.parse(TestConfigs.table("\"on_demand\": null", "\"on_demand\": {}")))
        .hasMessageContaining("on_demand.max_wait_ms is 0");
  }

  @Test
  void reportsEveryProblemOfATableAtOnce() {
    assertThatThrownBy(
            () ->
                TableConfig.parse(
                    TestConfigs.table(
                        "\"origin\": 1", "\"origin\": 70000",
                        "\"kind\": \"scalar\"", "\"kind\": \"blob\"",
                        "{\"points\": 864}", "{}",
                        "\"share\": 0.5", "\"share\": 1.5",
                        "\"keep_versions\": 1", "\"keep_versions\": 9",
                        "\"priority_weight\": 1.0", "\"priority_weight\": -1",
                        "\"parallelism\": 1,", "\"parallelism\": 200,")))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("7 problem(s)")
        .hasMessageContaining("origin is 70000")
        .hasMessageContaining("source.kind is 'blob'")
        .hasMessageContaining("exactly one of points and duration_ms")
        .hasMessageContaining("budget.share is 1.5")
        .hasMessageContaining("keep_versions is 9")
        .hasMessageContaining("priority_weight is -1.0")
        .hasMessageContaining("at least parallelism, 200");
    assertThatThrownBy(() -> TableConfig.parse("{\"table\": 1.5"))
        .hasMessageContaining("not the expected JSON object");
    assertThatThrownBy(() -> TableConfig.parse("null")).hasMessageContaining("null");
  }

  @Test
  void readsADeployment() throws Exception {
    DeploymentConfig config =
        DeploymentConfig.parse(
            "{\"kafka\": {\"bootstrap.servers\": \"k:9092\", \"security.protocol\": \"SSL\","
                + " \"reconnect.backoff.ms\": 50},"
                + " \"redis\": {\"url\": \"redis://r:6379/0\"},"
                + " \"region\": \"aws:eu\", \"group\": \"g\"}");
    assertThat(config.bootstrapServers()).isEqualTo("k:9092");
    assertThat(config.kafkaProperties())
        .containsEntry("security.protocol", "SSL")
        .containsEntry("reconnect.backoff.ms", "50");
    assertThat(config.startOffsets()).isEqualTo(DeploymentConfig.COMMITTED_OR_EARLIEST);
    assertThat(config.redis().cluster()).isFalse();
    assertThat(config.redis().prefix()).isEmpty();
    assertThat(config.redis().tombstoneRetentionMs()).isEqualTo(86_400_000);
    assertThat(InstantiationUtil.clone(config)).isEqualTo(config);
  }

  @Test
  void reportsEveryProblemOfADeploymentAtOnce() {
    assertThatThrownBy(() -> DeploymentConfig.parse("{\"start_offsets\": \"yesterday\"}"))
        .hasMessageContaining("bootstrap.servers")
        .hasMessageContaining("redis is missing")
        .hasMessageContaining("region")
        .hasMessageContaining("group")
        .hasMessageContaining("start_offsets is 'yesterday'");
  }
}
