package dev.freshet.connectors.kafka;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.freshet.connectors.testing.Await;
import dev.freshet.connectors.testing.TestConfigs;
import dev.freshet.connectors.testing.TestKafka;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.api.common.state.CheckpointListener;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.RestartStrategyOptions;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.core.memory.DataInputDeserializer;
import org.apache.flink.core.memory.DataOutputSerializer;
import org.apache.flink.runtime.state.FunctionInitializationContext;
import org.apache.flink.runtime.state.FunctionSnapshotContext;
import org.apache.flink.streaming.api.checkpoint.CheckpointedFunction;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Goal: records arrive with their places, tombstones too; after a failure, changes and inbox go on
 * from the checkpoint, and progress comes again from the beginning. Method: a real job on a real
 * broker, which fails once after a checkpoint.
 */
@Timeout(120)
final class LogStreamsTest {

  private static TestKafka kafka;

  /** What the job has seen; it runs in this process. */
  private static final Queue<String> SEEN = new ConcurrentLinkedQueue<>();

  private static final AtomicLong LAST_BEGUN = new AtomicLong();
  private static final AtomicLong LAST_COMPLETE = new AtomicLong();
  private static final AtomicBoolean FAIL = new AtomicBoolean();

  @BeforeAll
  static void start() throws Exception {
    kafka = TestKafka.start();
  }

  @AfterAll
  static void stop() throws Exception {
    kafka.close();
  }

  @BeforeEach
  void forget() {
    SEEN.clear();
    LAST_BEGUN.set(0);
    LAST_COMPLETE.set(0);
    FAIL.set(false);
  }

  private static String regions() {
    return String.format(
        """
        {"region": "a:b", "home_region": "a:b", "role": "waypoint", "inbox_topic": "inbox.a.b",
         "dead_letters_topic": "d", "progress_topic": "progress",
         "kafka": {"bootstrap.servers": "%1$s"}, "home_kafka": {"bootstrap.servers": "%1$s"},
         "group": "freshet-test"}
        """,
        kafka.bootstrapServers());
  }

  /** Notes what passes, and fails when told to, once and only after a checkpoint. */
  private static final class Witness
      implements MapFunction<LogRecord, String>, CheckpointedFunction, CheckpointListener {

    private static final long serialVersionUID = 1L;
    private final String topic;

    private Witness(String topic) {
      this.topic = topic;
    }

    @Override
    public String map(LogRecord record) {
      if (FAIL.compareAndSet(true, false)) {
        throw new IllegalStateException("the test fails the job once");
      }
      String seen = topic + " " + record.partition() + " " + record.offset() + " " + text(record);
      SEEN.add(seen);
      return seen;
    }

    private static String text(LogRecord record) {
      return record.isTombstone() ? "-" : new String(record.value(), UTF_8);
    }

    @Override
    public void initializeState(FunctionInitializationContext context) {}

    @Override
    public void snapshotState(FunctionSnapshotContext context) {
      LAST_BEGUN.accumulateAndGet(context.getCheckpointId(), Math::max);
    }

    @Override
    public void notifyCheckpointComplete(long checkpointId) {
      LAST_COMPLETE.accumulateAndGet(checkpointId, Math::max);
    }
  }

  private static void awaitSeen(String... records) throws Exception {
    Await.until(
        "these were seen: " + String.join(", ", records),
        () -> SEEN.size() >= records.length && SEEN.containsAll(List.of(records)));
  }

  /** Waits for a checkpoint that has all that was seen. */
  private static void awaitCheckpoint() throws Exception {
    // A barrier that has not come to any witness yet is behind all that they have seen.
    long lastWithout = LAST_BEGUN.get();
    Await.until("a checkpoint is complete", () -> LAST_COMPLETE.get() > lastWithout);
  }

  @Test
  void readsPlacesAndGoesOnOrBeginsAnew() throws Exception {
    kafka.createTopic("changes.cpu_stl", 2);
    kafka.createTopic("inbox.a.b", 1);
    kafka.createTopic("progress", 1);
    Configuration settings = new Configuration();
    settings.set(RestartStrategyOptions.RESTART_STRATEGY, "fixed-delay");
    settings.set(RestartStrategyOptions.RESTART_STRATEGY_FIXED_DELAY_ATTEMPTS, 1);
    settings.setString("restart-strategy.fixed-delay.delay", "1 ms");
    StreamExecutionEnvironment env = StreamExecutionEnvironment.createLocalEnvironment(2, settings);
    env.enableCheckpointing(100);
    LogStreams.changes(env, TestConfigs.table(), regions(), 2)
        .map(new Witness("changes"))
        .union(
            LogStreams.inbox(env, regions(), 1).map(new Witness("inbox")),
            LogStreams.progress(env, regions()).map(new Witness("progress")))
        .sinkTo(new DiscardingSink<>());
    try (KafkaProducer<byte[], byte[]> producer =
        new KafkaProducer<>(
            Map.of("bootstrap.servers", kafka.bootstrapServers()),
            new ByteArraySerializer(),
            new ByteArraySerializer())) {
      send(producer, "changes.cpu_stl", 0, "c0");
      send(producer, "changes.cpu_stl", 1, null);
      send(producer, "changes.cpu_stl", 1, "c1");
      send(producer, "inbox.a.b", 0, "i0");
      send(producer, "progress", 0, "p0");
      producer.flush();
      JobClient job = env.executeAsync("log streams");
      try {
        awaitSeen(
            "changes 0 0 c0", "changes 1 0 -", "changes 1 1 c1", "inbox 0 0 i0", "progress 0 0 p0");
        awaitCheckpoint();
        SEEN.clear();
        FAIL.set(true);
        send(producer, "progress", 0, "p1");
        producer.flush();
        awaitSeen("progress 0 0 p0", "progress 0 1 p1");

        send(producer, "changes.cpu_stl", 0, "c2");
        send(producer, "inbox.a.b", 0, "i1");
        producer.flush();
        awaitSeen("changes 0 1 c2", "inbox 0 1 i1");
        assertThat(SEEN).hasSize(4);
        assertThat(FAIL).isFalse();
      } finally {
        job.cancel().get();
      }
    }
  }

  private static void send(
      KafkaProducer<byte[], byte[]> producer, String topic, int partition, String value) {
    byte[] bytes = value == null ? null : value.getBytes(UTF_8);
    producer.send(new ProducerRecord<>(topic, partition, "key".getBytes(UTF_8), bytes));
  }

  @Test
  void tellsTheIdOfATopicAndOfItsNamesake() throws Exception {
    Properties properties = new Properties();
    properties.setProperty("bootstrap.servers", kafka.bootstrapServers());
    kafka.createTopic("changes.other", 1);
    String id = TopicIds.of(properties, "changes.other");
    assertThat(id).isNotEmpty().isEqualTo(TopicIds.of(properties, "changes.other"));
    assertThatThrownBy(() -> TopicIds.of(properties, "changes.missing"))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("topic 'changes.missing' does not exist at 127.0.0.1:")
        .hasMessageContaining("submit the table first");
  }

  @Test
  void recordsSurviveTheirSerializer() throws Exception {
    LogRecordSerializer serializer = new LogRecordSerializer();
    DataOutputSerializer out = new DataOutputSerializer(16);
    serializer.serialize(new LogRecord(3, 1L << 40, new byte[] {1, 2}), out);
    LogRecord copy = serializer.deserialize(new DataInputDeserializer(out.getCopyOfBuffer()));
    assertThat(copy.partition()).isEqualTo(3);
    assertThat(copy.offset()).isEqualTo(1L << 40);
    assertThat(copy.value()).containsExactly(1, 2);
  }
}
