package dev.freshet.connectors.store;

import static dev.freshet.connectors.testing.Changes.upsert;
import static org.assertj.core.api.Assertions.assertThat;

import dev.freshet.connectors.format.DeploymentConfig;
import dev.freshet.connectors.format.SingleObjectCodec;
import dev.freshet.connectors.format.TableConfig;
import dev.freshet.connectors.testing.TestConfigs;
import dev.freshet.connectors.testing.TestKafka;
import dev.freshet.schemas.FeatureChange;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The changes topic on a real broker: each subtask its partitions, each change once, then on. */
@Timeout(120)
final class KafkaChangeLogTest {

  private static final SingleObjectCodec<FeatureChange> CODEC =
      SingleObjectCodec.of(FeatureChange.class);

  private static TestKafka kafka;

  @BeforeAll
  static void start() throws Exception {
    kafka = TestKafka.start();
  }

  @AfterAll
  static void stop() throws Exception {
    kafka.close();
  }

  private static KafkaChangeLog open(String topic, int subtask, int parallelism) {
    return new KafkaChangeLog(
        TableConfig.parse(TestConfigs.table("changes.cpu_stl", topic)),
        DeploymentConfig.parse(
            TestConfigs.deployment(kafka.bootstrapServers(), "redis://127.0.0.1:1", false)),
        subtask,
        parallelism);
  }

  private static KafkaProducer<byte[], byte[]> producer() {
    return new KafkaProducer<>(
        Map.of("bootstrap.servers", kafka.bootstrapServers()),
        new ByteArraySerializer(),
        new ByteArraySerializer());
  }

  private static List<Long> read(KafkaChangeLog log) throws Exception {
    List<Long> versions = new ArrayList<>();
    log.readToEnd(changes -> changes.forEach(change -> versions.add(change.getVersionTimestamp())));
    return versions;
  }

  @Test
  void readsItsPartitionsToTheEndAndThenOn() throws Exception {
    kafka.createTopic("changes.some", 3);
    try (KafkaProducer<byte[], byte[]> producer = producer()) {
      for (int i = 0; i < 30; i++) {
        producer.send(
            new ProducerRecord<>("changes.some", i % 3, null, CODEC.encode(upsert("k", i, i))));
      }
      producer.send(new ProducerRecord<>("changes.some", 0, null, "foreign".getBytes()));
      producer.send(new ProducerRecord<>("changes.some", 0, "deleted".getBytes(), null));
      producer.flush();
      KafkaChangeLog first = open("changes.some", 0, 2);
      KafkaChangeLog second = open("changes.some", 1, 2);

      assertThat(read(first)).hasSize(20).allMatch(version -> version % 3 != 1);
      assertThat(read(second)).hasSize(10).allMatch(version -> version % 3 == 1);
      assertThat(read(first)).isEmpty();

      producer.send(
          new ProducerRecord<>("changes.some", 2, null, CODEC.encode(upsert("k", 99, 0))));
      producer.flush();
      assertThat(read(first)).containsExactly(99L);
      assertThat(read(second)).isEmpty();
    }
  }

  @Test
  void aSubtaskBeyondThePartitionsReadsNothing() throws Exception {
    kafka.createTopic("changes.narrow", 1);
    assertThat(read(open("changes.narrow", 1, 2))).isEmpty();
  }

  @Test
  void goesOnAfterTheChangesThatWereTaken() throws Exception {
    kafka.createTopic("changes.retried", 1);
    try (KafkaProducer<byte[], byte[]> producer = producer()) {
      producer.send(
          new ProducerRecord<>("changes.retried", 0, null, CODEC.encode(upsert("k", 1, 0))));
    }
    KafkaChangeLog log = open("changes.retried", 0, 1);
    boolean[] failed = {false};
    try {
      log.readToEnd(
          changes -> {
            if (!changes.isEmpty()) {
              failed[0] = true;
              throw new IllegalStateException("the sink fails");
            }
          });
    } catch (IllegalStateException e) {
      assertThat(e).hasMessage("the sink fails");
    }
    assertThat(failed[0]).isTrue();
    assertThat(read(log)).containsExactly(1L);
  }
}
