package dev.freshet.connectors.link;

import static java.nio.charset.StandardCharsets.UTF_8;

import dev.freshet.connectors.format.RegionsConfig;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.CommonClientConfigs;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Carries chunks to the inboxes on other regions' brokers, each region by a producer and a thread
 * of its own: a region that cannot be reached delays no other.
 *
 * <p>Several requests are under way on a link, so that its throughput is not one chunk a round
 * trip. A chunk that is not acknowledged within {@code delivery.timeout.ms} (25 s, unless the
 * region's {@code kafka_properties} say otherwise) fails. Failures are {@link TransportException}s.
 * After {@link #close}, which takes seconds at most, a chunk fails at once, on the caller's thread.
 */
public final class KafkaTransport implements Transport {

  /**
   * How long {@link #close} takes at most. A thread that then still waits for a broker, or for DNS,
   * ends by itself; for a broker after the request timeout at the latest.
   */
  static final Duration CLOSE_TIMEOUT = Duration.ofSeconds(3);

  /** A value that waits longer has been replaced by then, or is worth another chunk. */
  private static final int DELIVERY_TIMEOUT_MS = 25_000;

  /** After which a connection that died in silence is noticed, and another one tried. */
  private static final int REQUEST_TIMEOUT_MS = 10_000;

  /** How long a link's thread waits at a time, and so how precisely waiting chunks expire. */
  private static final int MAX_BLOCK_MS = 2_000;

  /** Largest request: as much as an inbox takes in one record, and what goes around it. */
  private static final int REQUEST_BYTES_MAX = 8 * 1024 * 1024 + 64 * 1024;

  /** A small chunk takes a buffer of this size until it is acknowledged, alone or with others. */
  private static final int BATCH_BYTES = 128 * 1024;

  /** Of all buffers of a link. */
  private static final int BUFFER_BYTES = 32 * 1024 * 1024;

  /** The most that an idempotent producer may have. */
  private static final int REQUESTS_IN_FLIGHT = 5;

  private final RegionsConfig config;
  private final String clientId;

  /** By region. */
  private final Map<String, KafkaLink> links = new HashMap<>();

  /** Guarded by {@link #links}, as these are. */
  private boolean closed;

  /**
   * Connects to nothing yet.
   *
   * @param clientId names the sender to the brokers; different for each subtask
   */
  public KafkaTransport(RegionsConfig config, String clientId) {
    this.config = config;
    this.clientId = clientId;
  }

  @Override
  public void send(String region, String table, int lane, byte[] chunk, Callback callback) {
    KafkaLink link;
    synchronized (links) {
      link = closed ? null : links.computeIfAbsent(region, this::open);
    }
    if (link == null) {
      callback.done(KafkaLink.closed("region " + region));
      return;
    }
    link.send((table + "/" + lane).getBytes(UTF_8), lane, chunk, callback);
  }

  private KafkaLink open(String region) {
    String where = "region " + region;
    RegionsConfig.Peer peer = config.regions().get(region);
    if (peer == null) {
      Duration timeout = Duration.ofMillis(DELIVERY_TIMEOUT_MS);
      return KafkaLink.open(where, "", timeout, () -> refuse(where));
    }
    Properties properties =
        producerProperties(peer.kafkaProperties(), clientId + "-to-" + region.replace(':', '.'));
    Object broker = properties.get(CommonClientConfigs.BOOTSTRAP_SERVERS_CONFIG);
    return KafkaLink.open(
        where + " (topic " + peer.inboxTopic() + " at " + broker + ")",
        peer.inboxTopic(),
        deliveryTimeout(properties),
        () ->
            new KafkaProducer<>(properties, new ByteArraySerializer(), new ByteArraySerializer()));
  }

  private KafkaProducer<byte[], byte[]> refuse(String where) throws TransportException {
    throw new TransportException(
        where
            + " is not in the configuration of region "
            + config.region()
            + "; add it to regions with its kafka_bootstrap",
        true,
        null);
  }

  /** The user's client properties, and ours where a promise depends on them. */
  static Properties producerProperties(Properties user, String clientId) {
    Properties properties = new Properties();
    // A chunk is a batch already, and compressed.
    set(properties, ProducerConfig.LINGER_MS_CONFIG, 0);
    set(properties, ProducerConfig.COMPRESSION_TYPE_CONFIG, "none");
    set(properties, ProducerConfig.BATCH_SIZE_CONFIG, BATCH_BYTES);
    set(properties, ProducerConfig.BUFFER_MEMORY_CONFIG, BUFFER_BYTES);
    set(properties, ProducerConfig.MAX_REQUEST_SIZE_CONFIG, REQUEST_BYTES_MAX);
    set(properties, ProducerConfig.DELIVERY_TIMEOUT_MS_CONFIG, DELIVERY_TIMEOUT_MS);
    set(properties, ProducerConfig.REQUEST_TIMEOUT_MS_CONFIG, REQUEST_TIMEOUT_MS);
    // The system's choice grows with bandwidth and round trip; Kafka's own, 128 KiB, does not.
    set(properties, ProducerConfig.SEND_BUFFER_CONFIG, -1);
    set(properties, ProducerConfig.RECEIVE_BUFFER_CONFIG, -1);
    set(properties, CommonClientConfigs.METRIC_REPORTER_CLASSES_CONFIG, "");
    set(properties, CommonClientConfigs.ENABLE_METRICS_PUSH_CONFIG, false);
    properties.putAll(user);
    set(properties, ProducerConfig.ACKS_CONFIG, "all");
    set(properties, ProducerConfig.ENABLE_IDEMPOTENCE_CONFIG, true);
    set(properties, ProducerConfig.MAX_IN_FLIGHT_REQUESTS_PER_CONNECTION, REQUESTS_IN_FLIGHT);
    set(properties, ProducerConfig.MAX_BLOCK_MS_CONFIG, MAX_BLOCK_MS);
    set(properties, CommonClientConfigs.CLIENT_ID_CONFIG, clientId);
    return properties;
  }

  private static void set(Properties properties, String name, Object value) {
    properties.setProperty(name, String.valueOf(value));
  }

  private static Duration deliveryTimeout(Properties properties) {
    try {
      return Duration.ofMillis(
          Long.parseLong(properties.getProperty(ProducerConfig.DELIVERY_TIMEOUT_MS_CONFIG)));
    } catch (NumberFormatException e) {
      // The producer refuses it, too, and its message names the property.
      return Duration.ofMillis(DELIVERY_TIMEOUT_MS);
    }
  }

  @Override
  public void close() {
    synchronized (links) {
      closed = true;
    }
    // From here on nobody adds a link.
    links.values().forEach(KafkaLink::close);
    long deadlineNanos = System.nanoTime() + CLOSE_TIMEOUT.toNanos();
    try {
      for (KafkaLink link : links.values()) {
        link.awaitClosed(deadlineNanos);
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
