package dev.freshet.connectors.link;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.CommonClientConfigs;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Writes states to a compacted topic of home's, of each key one at a time and then the newest. It
 * neither blocks nor fails: while home cannot be reached, a state is replaced by the next one of
 * its key, so that two of each are held at most. A state that fails is given up; the next one says
 * more. Thread-safe.
 */
final class ProgressReporter implements AutoCloseable {

  private static final Logger LOG = LoggerFactory.getLogger(ProgressReporter.class);

  /** How long a state may wait for home to be reached the first time. */
  private static final Duration DELIVERY_TIMEOUT = Duration.ofSeconds(10);

  /** How long {@link #close} takes at most. */
  private static final Duration CLOSE_TIMEOUT = Duration.ofSeconds(2);

  /** The states of one key; guarded by {@link #states}. */
  private static final class State {
    /** What is sent next; null if that is nothing. */
    private byte[] next;

    private boolean isUnderWay;
  }

  private final Map<String, State> states = new HashMap<>();
  private final KafkaLink link;

  /** Failures in a row; guarded by {@link #states}. */
  private int failures;

  /**
   * Connects to nothing yet.
   *
   * @param kafka client properties of home's broker
   * @param clientId names the sender to the broker; different for each subtask
   */
  ProgressReporter(Properties kafka, String topic, String clientId) {
    Properties properties = KafkaTransport.producerProperties(kafka, clientId);
    Object broker = properties.get(CommonClientConfigs.BOOTSTRAP_SERVERS_CONFIG);
    link =
        KafkaLink.open(
            "home (topic " + topic + " at " + broker + ")",
            topic,
            DELIVERY_TIMEOUT,
            () ->
                new KafkaProducer<>(
                    properties, new ByteArraySerializer(), new ByteArraySerializer()));
  }

  /** Writes a state, unless a newer one of its key comes first. */
  void report(String key, byte[] value) {
    State state;
    synchronized (states) {
      state = states.computeIfAbsent(key, any -> new State());
      state.next = value;
      if (state.isUnderWay) {
        return;
      }
      state.isUnderWay = true;
    }
    sendNext(key, state);
  }

  private void sendNext(String key, State state) {
    byte[] value;
    synchronized (states) {
      value = state.next;
      state.next = null;
      state.isUnderWay = value != null;
    }
    if (value != null) {
      link.send(
          key.getBytes(UTF_8), key.hashCode(), value, failure -> answered(key, state, failure));
    }
  }

  private void answered(String key, State state, Exception failure) {
    synchronized (states) {
      failures = failure == null ? 0 : failures + 1;
      if (Integer.bitCount(failures) == 1) {
        LOG.warn("Report {} was given up, the {}. in a row: {}", key, failures, failure.toString());
      }
    }
    sendNext(key, state);
  }

  @Override
  public void close() {
    link.close();
    try {
      link.awaitClosed(System.nanoTime() + CLOSE_TIMEOUT.toNanos());
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
