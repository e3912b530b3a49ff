package dev.freshet.connectors.link;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import dev.freshet.connectors.testing.Await;
import dev.freshet.connectors.testing.SlowProxy;
import dev.freshet.connectors.testing.TestKafka;
import dev.freshet.connectors.testing.TestRedis;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Goal: reports get to home, the newest of each key at the latest when home can be reached again,
 * and never hold up who reports. Method: a real broker, behind a way that is cut, and an address
 * where nobody is.
 */
@Timeout(60)
final class ProgressReporterTest {

  private static final String TOPIC = "progress";

  private static SlowProxy way;
  private static TestKafka kafka;

  @BeforeAll
  static void start() throws Exception {
    int port = TestRedis.freePort();
    way = SlowProxy.start(port, 0);
    kafka = TestKafka.start(port, way.port());
    kafka.createTopic(TOPIC, 1);
  }

  @AfterAll
  static void stop() throws Exception {
    kafka.close();
    way.close();
  }

  private static ProgressReporter reporter(String bootstrap) {
    Properties properties = new Properties();
    properties.setProperty("bootstrap.servers", bootstrap);
    return new ProgressReporter(properties, TOPIC, "test");
  }

  /** All values of a key so far. */
  private static List<String> read(String key) {
    List<String> values = new ArrayList<>();
    try (KafkaConsumer<byte[], byte[]> consumer =
        new KafkaConsumer<>(
            Map.of("bootstrap.servers", kafka.bootstrapServers()),
            new ByteArrayDeserializer(),
            new ByteArrayDeserializer())) {
      TopicPartition all = new TopicPartition(TOPIC, 0);
      consumer.assign(List.of(all));
      consumer.seekToBeginning(List.of(all));
      long end = consumer.endOffsets(List.of(all)).get(all);
      while (consumer.position(all) < end) {
        for (ConsumerRecord<byte[], byte[]> found : consumer.poll(Duration.ofMillis(100))) {
          if (key.equals(new String(found.key(), UTF_8))) {
            values.add(new String(found.value(), UTF_8));
          }
        }
      }
    }
    return values;
  }

  @Test
  void theNewestArrivesWhenHomeIsBack() throws Exception {
    try (ProgressReporter reporter = reporter(kafka.bootstrapServers())) {
      reporter.report("a", "0".getBytes(UTF_8));
      Await.until("the first is there", () -> read("a").equals(List.of("0")));
      way.cut();
      for (int i = 1; i <= 1_000; i++) {
        reporter.report("a", String.valueOf(i).getBytes(UTF_8));
        reporter.report("b", String.valueOf(i).getBytes(UTF_8));
      }
      way.heal();
      Await.until("the last is there", () -> read("a").contains("1000"));
      Await.until("of each key", () -> read("b").contains("1000"));
      assertThat(read("a")).as("most were replaced").hasSizeLessThan(10);
      assertThat(read("a")).endsWith("1000");
    }
  }

  @Test
  void whoReportsDoesNotWait() throws Exception {
    long started = System.nanoTime();
    try (ProgressReporter reporter = reporter("127.0.0.1:" + TestRedis.freePort())) {
      for (int i = 0; i < 100_000; i++) {
        reporter.report("a", new byte[1_000]);
      }
    }
    assertThat(Duration.ofNanos(System.nanoTime() - started)).isLessThan(Duration.ofSeconds(10));
  }
}
