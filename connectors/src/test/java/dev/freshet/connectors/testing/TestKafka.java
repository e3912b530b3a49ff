package dev.freshet.connectors.testing;

import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import kafka.server.KafkaConfig;
import kafka.server.KafkaRaftServer;
import org.apache.flink.util.FileUtils;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.metadata.storage.Formatter;

/** A real Kafka broker, its own controller, in this process and on loopback. */
public final class TestKafka implements AutoCloseable {

  private static final long READY_NANOS = 60_000_000_000L;
  private static final long POLL_MS = 20;

  private final Path directory;
  private final String bootstrapServers;
  private final KafkaRaftServer server;

  private TestKafka(Path directory, int port, KafkaRaftServer server) {
    this.directory = directory;
    this.bootstrapServers = "127.0.0.1:" + port;
    this.server = server;
  }

  /** Starts a broker on a free port. */
  public static TestKafka start() throws Exception {
    int port = TestRedis.freePort();
    return start(port, port);
  }

  /** Starts a broker that tells its clients to connect to another port: that of a proxy. */
  public static TestKafka start(int port, int advertisedPort) throws Exception {
    Path directory = Files.createTempDirectory("freshet-kafka");
    int controllerPort = TestRedis.freePort();
    String log = directory.resolve("log").toString();
    Formatter formatter = new Formatter();
    formatter
        .setPrintStream(new PrintStream(OutputStream.nullOutputStream()))
        .setClusterId(Uuid.randomUuid().toString())
        .setNodeId(1)
        .setControllerListenerName("CONTROLLER")
        .setMetadataLogDirectory(log)
        .setDirectories(List.of(log))
        .run();
    Map<String, String> config = new HashMap<>();
    config.put("process.roles", "broker,controller");
    config.put("node.id", "1");
    config.put("controller.quorum.voters", "1@127.0.0.1:" + controllerPort);
    config.put("controller.listener.names", "CONTROLLER");
    config.put(
        "listeners", "PLAINTEXT://127.0.0.1:" + port + ",CONTROLLER://127.0.0.1:" + controllerPort);
    config.put("advertised.listeners", "PLAINTEXT://127.0.0.1:" + advertisedPort);
    config.put("log.dirs", log);
    config.put("offsets.topic.replication.factor", "1");
    config.put("offsets.topic.num.partitions", "1");
    config.put("group.initial.rebalance.delay.ms", "0");
    config.put("auto.create.topics.enable", "false");
    KafkaRaftServer server = new KafkaRaftServer(new KafkaConfig(config), Time.SYSTEM);
    server.startup();
    return new TestKafka(directory, advertisedPort, server);
  }

  public String bootstrapServers() {
    return bootstrapServers;
  }

  /**
   * Creates a topic and waits until each of its partitions can be read and written.
   *
   * <p>A producer whose first batch comes before, and whose second one after that moment, never
   * gets the first one in (KAFKA-15591).
   */
  public void createTopic(String topic, int partitions) throws Exception {
    try (Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrapServers))) {
      admin.createTopics(List.of(new NewTopic(topic, partitions, (short) 1))).all().get();
      Map<TopicPartition, OffsetSpec> ends =
          IntStream.range(0, partitions)
              .mapToObj(partition -> new TopicPartition(topic, partition))
              .collect(Collectors.toMap(partition -> partition, partition -> OffsetSpec.latest()));
      long deadline = System.nanoTime() + READY_NANOS;
      while (!areServed(admin, ends)) {
        if (System.nanoTime() > deadline) {
          throw new IllegalStateException("the partitions of " + topic + " do not come up");
        }
        Thread.sleep(POLL_MS);
      }
    }
  }

  private static boolean areServed(Admin admin, Map<TopicPartition, OffsetSpec> ends)
      throws InterruptedException {
    try {
      admin.listOffsets(ends).all().get();
      return true;
    } catch (ExecutionException e) {
      if (e.getCause() instanceof RetriableException) {
        return false;
      }
      throw new IllegalStateException(e.getCause());
    }
  }

  @Override
  public void close() throws IOException {
    server.shutdown();
    server.awaitShutdown();
    FileUtils.deleteDirectory(directory.toFile());
  }
}
