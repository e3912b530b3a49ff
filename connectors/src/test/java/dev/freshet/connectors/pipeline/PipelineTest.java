package dev.freshet.connectors.pipeline;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import dev.freshet.connectors.format.AvroRecordTypeInfo;
import dev.freshet.connectors.format.SingleObjectCodec;
import dev.freshet.connectors.kafka.Ingest;
import dev.freshet.connectors.kafka.IngestStreams;
import dev.freshet.connectors.kafka.SinkStreams;
import dev.freshet.connectors.record.Event;
import dev.freshet.connectors.record.Feedback;
import dev.freshet.connectors.record.Version;
import dev.freshet.connectors.store.StoreLayout;
import dev.freshet.connectors.store.StoreStreams;
import dev.freshet.connectors.store.Written;
import dev.freshet.connectors.testing.Await;
import dev.freshet.connectors.testing.Changes;
import dev.freshet.connectors.testing.TestConfigs;
import dev.freshet.connectors.testing.TestKafka;
import dev.freshet.connectors.testing.TestRedis;
import dev.freshet.schemas.DeadLetter;
import dev.freshet.schemas.FeatureChange;
import dev.freshet.schemas.Progress;
import dev.freshet.schemas.Stage;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.avro.specific.SpecificRecordBase;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Goal: what this module composes works in a real Flink with a real Kafka and Redis. Method: a job
 * that turns each event into a feature; three subtasks read two partitions, so one has none, and
 * there is no idle timeout that would help it; Redis is killed and comes back empty.
 */
@Timeout(180)
final class PipelineTest {

  private static final int KEYS = 40;
  private static final long HEARTBEAT_MS = 1_700_000_000_000L;

  private TestKafka kafka;
  private TestRedis redis;
  private KafkaProducer<byte[], byte[]> producer;
  private JobClient job;

  @BeforeEach
  void start() throws Exception {
    kafka = TestKafka.start();
    redis = TestRedis.start();
    producer =
        new KafkaProducer<>(
            Map.of("bootstrap.servers", kafka.bootstrapServers()),
            new ByteArraySerializer(),
            new ByteArraySerializer());
    for (String topic : List.of("events.cpu_stl", "feedback.cpu_stl", "changes.cpu_stl")) {
      kafka.createTopic(topic, 2);
    }
    kafka.createTopic("progress", 1);
    kafka.createTopic("dead-letters.cpu_stl", 1);
  }

  @AfterEach
  void stop() throws Exception {
    if (job != null) {
      job.cancel().get();
    }
    producer.close();
    redis.close();
    kafka.close();
  }

  private void submit() throws Exception {
    String table =
        TestConfigs.table(
            "\"parallelism\": 1,", "\"parallelism\": 3,",
            "\"idle_timeout_ms\": 5000", "\"idle_timeout_ms\": null");
    String deployment = TestConfigs.deployment(kafka.bootstrapServers(), redis.url(), false);
    StreamExecutionEnvironment env =
        StreamExecutionEnvironment.createLocalEnvironment(3, new Configuration());
    env.enableCheckpointing(300);
    Ingest<Event> events = IngestStreams.events(env, table, deployment);
    Ingest<Feedback> feedback = IngestStreams.feedback(env, table, deployment);
    DataStream<FeatureChange> changes =
        events
            .records()
            .keyBy(Event::key)
            .map(
                event ->
                    Changes.upsert(event.key(), event.timestampMs() * 1_000, (float) event.id()),
                AvroRecordTypeInfo.FEATURE_CHANGE);
    Written written = StoreStreams.write(changes, table, deployment);
    SinkStreams.changes(written.changes(), table, deployment);
    SinkStreams.progress(written.progress(), table, deployment);
    SinkStreams.deadLetters(
        events.deadLetters().union(feedback.deadLetters(), written.deadLetters()),
        table,
        deployment);
    job = env.executeAsync("pipeline");
  }

  private void send(String topic, int partition, String value) {
    producer.send(new ProducerRecord<>(topic, partition, null, value.getBytes(UTF_8)));
  }

  private void sendEvents(long firstTimestampMs) {
    for (int i = 0; i < KEYS; i++) {
      send(
          "events.cpu_stl",
          i % 2,
          "{\"key\": \"k" + i + "\", \"ts\": " + (firstTimestampMs + i) + ", \"value\": 1}");
    }
  }

  private void heartbeat(long timestampMs) {
    for (int partition = 0; partition < 2; partition++) {
      RecordHeaders headers = new RecordHeaders();
      headers.add("freshet-heartbeat", new byte[0]);
      ProducerRecord<byte[], byte[]> heartbeat =
          new ProducerRecord<>("events.cpu_stl", partition, timestampMs, null, null, headers);
      producer.send(heartbeat);
    }
    producer.flush();
  }

  private <T extends SpecificRecordBase> List<T> read(String topic, int partitions, Class<T> type)
      throws IOException {
    List<T> records = new ArrayList<>();
    List<TopicPartition> all = new ArrayList<>();
    for (int i = 0; i < partitions; i++) {
      all.add(new TopicPartition(topic, i));
    }
    try (KafkaConsumer<byte[], byte[]> consumer =
        new KafkaConsumer<>(
            Map.of("bootstrap.servers", kafka.bootstrapServers()),
            new ByteArrayDeserializer(),
            new ByteArrayDeserializer())) {
      consumer.assign(all);
      consumer.seekToBeginning(all);
      Map<TopicPartition, Long> ends = consumer.endOffsets(all);
      while (ends.entrySet().stream().anyMatch(e -> consumer.position(e.getKey()) < e.getValue())) {
        for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(100))) {
          records.add(SingleObjectCodec.of(type).decode(record.value()));
        }
      }
    }
    return records;
  }

  /** Newest watermark of each subtask's progress. */
  private Map<Integer, Long> progress() throws IOException {
    Map<Integer, Long> watermarks = new HashMap<>();
    for (Progress record : read("progress", 1, Progress.class)) {
      watermarks.merge(record.getSubtask(), record.getWatermark(), Math::max);
    }
    return watermarks;
  }

  private void awaitProgress(long watermark) throws Exception {
    Await.until(
        "all three subtasks report progress up to " + watermark,
        () -> progress().equals(Map.of(0, watermark, 1, watermark, 2, watermark)));
  }

  private void assertStored(long firstTimestampMs) {
    try (TestRedis.Inspector inspector = redis.inspect()) {
      for (int i = 0; i < KEYS; i++) {
        byte[] stored = inspector.commands().get(StoreLayout.key("", "cpu_stl", "k" + i));
        assertThat(stored).as("k" + i).isNotNull();
        assertThat(StoreLayout.decode(stored).version())
            .isEqualTo(new Version((firstTimestampMs + i) * 1_000, 1));
      }
    }
  }

  @Test
  void fromEventsToTheStoreAndBackAfterALoss() throws Exception {
    sendEvents(1_000);
    send("events.cpu_stl", 0, "{\"key\": \"k\"");
    send("feedback.cpu_stl", 1, "{\"key\": \"k\", \"version\": \"1.0\", \"error\": -1}");
    heartbeat(HEARTBEAT_MS);
    submit();

    awaitProgress(HEARTBEAT_MS);
    assertStored(1_000);
    Await.until(
        "every write has its change event",
        () -> read("changes.cpu_stl", 2, FeatureChange.class).size() >= KEYS);
    Await.until(
        "both dead letters are there",
        () -> read("dead-letters.cpu_stl", 1, DeadLetter.class).size() >= 2);
    assertThat(read("dead-letters.cpu_stl", 1, DeadLetter.class))
        .extracting(DeadLetter::getStage)
        .containsExactlyInAnyOrder(Stage.EVENT, Stage.FEEDBACK);

    redis.kill();
    redis.restart();
    heartbeat(HEARTBEAT_MS + 1);
    awaitProgress(HEARTBEAT_MS + 1);
    assertStored(1_000);
    assertThat(job.getJobStatus().get()).hasToString("RUNNING");
  }
}
