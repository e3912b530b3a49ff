package dev.freshet.connectors.link;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import dev.freshet.connectors.format.RegionsConfig;
import dev.freshet.connectors.testing.Await;
import dev.freshet.connectors.testing.SlowProxy;
import dev.freshet.connectors.testing.TestKafka;
import dev.freshet.connectors.testing.TestRedis;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Goal: chunks arrive in order and fast over a long way; a region that cannot be reached, or that
 * refuses, holds up nobody, says what to do, and is reached again. Method: a real broker, some of
 * the time behind a slow way that is cut, and a socket that never answers.
 */
@Timeout(120)
final class KafkaTransportTest {

  /** Short, so that a failure need not be waited for long. */
  private static final String IMPATIENT =
      ", \"delivery.timeout.ms\": 1500, \"request.timeout.ms\": 500";

  /** For much data on a busy machine, where all of it must arrive. */
  private static final String LESS_IMPATIENT =
      ", \"delivery.timeout.ms\": 8000, \"request.timeout.ms\": 3000";

  private static final long DELAY_MS = 25;

  private static TestKafka kafka;

  @BeforeAll
  static void start() throws Exception {
    kafka = TestKafka.start();
  }

  @AfterAll
  static void stop() throws Exception {
    kafka.close();
  }

  /** What became of the chunks of one test, by their text. */
  private static final class Outcomes {

    private final Map<String, Optional<Exception>> known = new ConcurrentHashMap<>();
    private final AtomicInteger calls = new AtomicInteger();

    void send(KafkaTransport transport, String region, int lane, String chunk) {
      send(transport, region, lane, chunk, chunk.getBytes(UTF_8));
    }

    void send(KafkaTransport transport, String region, int lane, String name, byte[] chunk) {
      transport.send(
          region,
          "table",
          lane,
          chunk,
          failure -> {
            calls.incrementAndGet();
            known.put(name, Optional.ofNullable(failure));
          });
    }

    TransportException awaitFailure(String chunk) throws Exception {
      Await.until(chunk + " has failed", () -> known.containsKey(chunk));
      assertThat(known.get(chunk)).as(chunk).isPresent();
      return (TransportException) known.get(chunk).get();
    }

    void awaitArrival(String chunk) throws Exception {
      Await.until(chunk + " has arrived", () -> known.containsKey(chunk));
      assertThat(known.get(chunk)).as(chunk).isEmpty();
    }
  }

  private static String peer(String region, String bootstrap, String topic, String properties) {
    return String.format(
        "\"%s\": {\"kafka\": {\"bootstrap.servers\": \"%s\"%s}, \"role\": \"destination\","
            + " \"inbox_topic\": \"%s\"}",
        region, bootstrap, properties, topic);
  }

  private static KafkaTransport transport(String clientId, String... peers) {
    String config =
        String.format(
            """
            {"region": "a:home", "home_region": "a:home", "role": "waypoint", "inbox_topic": "i",
             "dead_letters_topic": "d", "progress_topic": "p", "group": "g",
             "kafka": {"bootstrap.servers": "h:1"}, "home_kafka": {"bootstrap.servers": "h:1"},
             "regions": {%s}}
            """,
            String.join(", ", peers));
    return new KafkaTransport(RegionsConfig.parse(config), clientId);
  }

  private static List<ConsumerRecord<byte[], byte[]>> read(String topic, int partition) {
    List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>();
    try (KafkaConsumer<byte[], byte[]> consumer =
        new KafkaConsumer<>(
            Map.of("bootstrap.servers", kafka.bootstrapServers()),
            new ByteArrayDeserializer(),
            new ByteArrayDeserializer())) {
      TopicPartition all = new TopicPartition(topic, partition);
      consumer.assign(List.of(all));
      consumer.seekToBeginning(List.of(all));
      long end = consumer.endOffsets(List.of(all)).get(all);
      while (consumer.position(all) < end) {
        consumer.poll(Duration.ofMillis(100)).forEach(records::add);
      }
    }
    return records;
  }

  private static List<String> threads(String clientId) {
    return Thread.getAllStackTraces().keySet().stream()
        .map(Thread::getName)
        .filter(name -> name.contains(clientId) || name.contains("region a:silent"))
        .toList();
  }

  @Test
  void chunksOfALaneArriveInOrder() throws Exception {
    kafka.createTopic("inbox.in.order", 2);
    Outcomes outcomes = new Outcomes();
    try (KafkaTransport transport =
        transport("order", peer("a:b", kafka.bootstrapServers(), "inbox.in.order", ""))) {
      for (int i = 0; i < 300; i++) {
        outcomes.send(transport, "a:b", i % 3, "chunk " + i);
      }
      for (int i = 0; i < 300; i++) {
        outcomes.awaitArrival("chunk " + i);
      }
    }
    assertThat(outcomes.calls).hasValue(300);
    // Lanes 0 and 2 share a partition.
    assertThat(read("inbox.in.order", 0).stream().map(record -> new String(record.value(), UTF_8)))
        .containsExactlyElementsOf(
            IntStream.range(0, 300).filter(i -> i % 3 != 1).mapToObj(i -> "chunk " + i).toList());
    assertThat(read("inbox.in.order", 1))
        .hasSize(100)
        .allSatisfy(record -> assertThat(record.key()).isEqualTo("table/1".getBytes(UTF_8)));
  }

  @Test
  void aRegionThatDoesNotAnswerHoldsUpNobody() throws Exception {
    kafka.createTopic("inbox.live", 1);
    Outcomes outcomes = new Outcomes();
    // Connections are taken by the system, and nobody ever reads from them.
    try (ServerSocket silent = new ServerSocket(0, 50, InetAddress.getLoopbackAddress())) {
      String address = "127.0.0.1:" + silent.getLocalPort();
      KafkaTransport transport =
          transport(
              "holds-up-nobody",
              peer("a:silent", address, "inbox.silent", ", \"request.timeout.ms\": 2000"),
              peer("a:live", kafka.bootstrapServers(), "inbox.live", ""));
      for (int i = 0; i < 20; i++) {
        outcomes.send(transport, "a:silent", i, "silent " + i);
      }
      outcomes.send(transport, "a:live", 0, "live");
      outcomes.awaitArrival("live");
      assertThat(outcomes.calls).as("what the silent region was sent waits").hasValue(1);

      long began = System.nanoTime();
      transport.close();
      assertThat(Duration.ofNanos(System.nanoTime() - began))
          .isLessThan(KafkaTransport.CLOSE_TIMEOUT.plusSeconds(1));
      for (int i = 0; i < 20; i++) {
        assertThat(outcomes.awaitFailure("silent " + i)).hasMessageContaining("is closed");
      }
      outcomes.send(transport, "a:live", 0, "after the end");
      assertThat(outcomes.awaitFailure("after the end")).hasMessageContaining("is closed");
      assertThat(outcomes.calls).hasValue(22);
      Await.until("its threads have ended", () -> threads("holds-up-nobody").isEmpty());
    }
  }

  @Test
  void chunksFailWhenTheirTimeIsOver() throws Exception {
    Outcomes outcomes = new Outcomes();
    String nowhere = "127.0.0.1:" + TestRedis.freePort();
    try (KafkaTransport transport =
        transport("time-over", peer("a:down", nowhere, "inbox.down", IMPATIENT))) {
      for (int i = 0; i < 20; i++) {
        outcomes.send(transport, "a:down", i, "chunk " + i);
      }
      for (int i = 0; i < 20; i++) {
        TransportException failure = outcomes.awaitFailure("chunk " + i);
        assertThat(failure.permanent()).isFalse();
        assertThat(failure)
            .hasMessageContaining("region a:down (topic inbox.down at " + nowhere + ") cannot be");
      }
    }
    assertThat(outcomes.calls).hasValue(20);
  }

  @Test
  void aLongWayIsUsedWellAndACutIsNoticedAndHealed() throws Exception {
    int port = TestRedis.freePort();
    try (SlowProxy way = SlowProxy.start(port, DELAY_MS);
        TestKafka far = TestKafka.start(port, way.port())) {
      far.createTopic("inbox.far", 2);
      Outcomes outcomes = new Outcomes();
      try (KafkaTransport transport =
          transport(
              "long-way", peer("a:far", far.bootstrapServers(), "inbox.far", LESS_IMPATIENT))) {
        Await.until(
            "the way is open",
            () -> {
              outcomes.known.clear();
              outcomes.send(transport, "a:far", 0, "first");
              Await.until("it is known", () -> outcomes.known.containsKey("first"));
              return outcomes.known.get("first").isEmpty();
            });
        int chunks = 100;
        long began = System.nanoTime();
        for (int i = 0; i < chunks; i++) {
          outcomes.send(transport, "a:far", i, "chunk " + i, new byte[100_000]);
        }
        for (int i = 0; i < chunks; i++) {
          outcomes.awaitArrival("chunk " + i);
        }
        Duration took = Duration.ofNanos(System.nanoTime() - began);
        assertThat(took)
            .as("%d chunks, a round trip of %d ms", chunks, 2 * DELAY_MS)
            .isGreaterThan(Duration.ofMillis(2 * DELAY_MS))
            .isLessThan(Duration.ofMillis(2 * DELAY_MS * chunks / 2));

        way.cut();
        outcomes.send(transport, "a:far", 0, "into the cut");
        assertThat(outcomes.awaitFailure("into the cut").permanent()).isFalse();
        way.heal();
        Await.until(
            "the way is used again",
            () -> {
              outcomes.known.remove("healed");
              outcomes.send(transport, "a:far", 0, "healed");
              Await.until("it is known", () -> outcomes.known.containsKey("healed"));
              return outcomes.known.get("healed").isEmpty();
            });
      }
    }
  }

  @Test
  void aMissingInboxIsToldAndUsedOnceItIsThere() throws Exception {
    Outcomes outcomes = new Outcomes();
    try (KafkaTransport transport =
        transport("missing", peer("a:new", kafka.bootstrapServers(), "inbox.new", ""))) {
      outcomes.send(transport, "a:new", 0, "early");
      TransportException failure = outcomes.awaitFailure("early");
      assertThat(failure.permanent()).isTrue();
      assertThat(failure)
          .hasMessageContaining("inbox.new")
          .hasMessageContaining("start the region's job, which creates the topic");
      kafka.createTopic("inbox.new", 1);
      outcomes.send(transport, "a:new", 0, "in time");
      outcomes.awaitArrival("in time");
    }
  }

  @Test
  void aChunkThatIsTooLargeFailsAlone() throws Exception {
    kafka.createTopic("inbox.small", 1);
    Outcomes outcomes = new Outcomes();
    try (KafkaTransport transport =
        transport("large", peer("a:b", kafka.bootstrapServers(), "inbox.small", ""))) {
      outcomes.send(transport, "a:b", 0, "for the topic", new byte[2 << 20]);
      outcomes.send(transport, "a:b", 0, "for anybody", new byte[9 << 20]);
      outcomes.send(transport, "a:b", 0, "good");
      outcomes.awaitArrival("good");
      for (String chunk : List.of("for the topic", "for anybody")) {
        assertThat(outcomes.awaitFailure(chunk).permanent()).isTrue();
        assertThat(outcomes.awaitFailure(chunk)).hasMessageContaining("raise max.message.bytes");
      }
    }
  }

  @Test
  void whatIsWrongWithTheConfigurationIsTold() throws Exception {
    Outcomes outcomes = new Outcomes();
    try (KafkaTransport transport =
        transport("wrong", peer("a:b", "k:1", "inbox", ", \"security.protocol\": \"NONE\""))) {
      outcomes.send(transport, "a:b", 0, "unusable");
      outcomes.send(transport, "a:elsewhere", 0, "unknown");
      assertThat(outcomes.awaitFailure("unusable").permanent()).isTrue();
      assertThat(outcomes.awaitFailure("unusable"))
          .hasMessageContaining("correct the region's kafka_properties");
      assertThat(outcomes.awaitFailure("unknown").permanent()).isTrue();
      assertThat(outcomes.awaitFailure("unknown"))
          .hasMessageContaining("region a:elsewhere is not in the configuration of region a:home");
    }
  }
}
