package dev.freshet.connectors.link;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.errors.InterruptException;
import org.apache.kafka.common.errors.RecordTooLargeException;
import org.apache.kafka.common.errors.TimeoutException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The way to one topic of one region: a producer on a thread of its own, because making it and
 * handing it a record may block, for names, for metadata or for room in its buffer.
 *
 * <p>A chunk waits here only while the region has not been reached, then in the producer; in either
 * place for the delivery timeout at most. A failure that stays fails all that waits here, and the
 * next attempt comes after a pause, so that a caller that sends again at once does not spin.
 */
final class KafkaLink {

  /** Makes the producer; what it throws is told to the chunks that wait. */
  @FunctionalInterface
  interface ProducerFactory {
    KafkaProducer<byte[], byte[]> create() throws TransportException;
  }

  private static final Logger LOG = LoggerFactory.getLogger(KafkaLink.class);

  /** Time for chunks under way when the link is closed; what they carry is sent again anyway. */
  private static final Duration FLUSH = Duration.ofSeconds(1);

  /** Between attempts that fail without having waited themselves. */
  private static final long PAUSE_MS = 1_000;

  private final String where;
  private final String topic;
  private final Duration deliveryTimeout;
  private final ProducerFactory producers;
  private final LinkedBlockingQueue<Outgoing> waiting = new LinkedBlockingQueue<>();
  private final CountDownLatch closing = new CountDownLatch(1);
  private final Thread thread;

  /** Whether chunks are still taken; guarded by {@link #waiting}. */
  private boolean open = true;

  /** Set by the producer's thread: no more can be sent with it. */
  private volatile boolean broken;

  /** The link's thread's own. */
  private KafkaProducer<byte[], byte[]> producer;

  private KafkaLink(
      String where, String topic, Duration deliveryTimeout, ProducerFactory producers) {
    this.where = where;
    this.topic = topic;
    this.deliveryTimeout = deliveryTimeout;
    this.producers = producers;
    this.thread = new Thread(this::run, "freshet-link to " + where);
  }

  /**
   * Starts the link's thread.
   *
   * @param where names the region in messages
   * @param deliveryTimeout how long a chunk waits for the region to be reached
   */
  static KafkaLink open(
      String where, String topic, Duration deliveryTimeout, ProducerFactory producers) {
    KafkaLink link = new KafkaLink(where, topic, deliveryTimeout, producers);
    link.thread.setDaemon(true);
    link.thread.start();
    return link;
  }

  /** Sends without blocking. */
  void send(byte[] key, int lane, byte[] chunk, Transport.Callback callback) {
    long deadlineNanos = System.nanoTime() + deliveryTimeout.toNanos();
    Outgoing outgoing = new Outgoing(key, lane, chunk, deadlineNanos, callback);
    synchronized (waiting) {
      if (open) {
        waiting.add(outgoing);
        return;
      }
    }
    outgoing.finish(closed(where));
  }

  /** Begins to close the link; {@link #awaitClosed} waits for its end. */
  void close() {
    closing.countDown();
    // Whatever it waits for.
    thread.interrupt();
  }

  /** Waits until the thread has ended, but not past the deadline, by {@link System#nanoTime}. */
  void awaitClosed(long deadlineNanos) throws InterruptedException {
    long millis = TimeUnit.NANOSECONDS.toMillis(deadlineNanos - System.nanoTime());
    thread.join(Math.max(1, millis));
    if (thread.isAlive()) {
      LOG.info("The thread for {} still waits for an answer, and will end by itself", where);
    }
  }

  /** What chunks fail with that a closed link has or is given. */
  static TransportException closed(String where) {
    return new TransportException(where + ": the transport is closed", false, null);
  }

  private void run() {
    try {
      while (!isClosing()) {
        handOver(waiting.take());
      }
    } catch (InterruptedException | InterruptException e) {
      // By close().
    } finally {
      end();
    }
  }

  private boolean isClosing() {
    return closing.getCount() == 0;
  }

  /** Gives a chunk to the producer, or fails it. */
  private void handOver(Outgoing outgoing) throws InterruptedException {
    boolean done = false;
    try {
      while (!done && !isClosing()) {
        done = attempt(outgoing);
      }
    } finally {
      if (!done) {
        outgoing.finish(closed(where));
      }
    }
  }

  /** Whether the chunk is with the producer, or has failed. */
  private boolean attempt(Outgoing outgoing) throws InterruptedException {
    try {
      give(outgoing);
      return true;
    } catch (InterruptException e) {
      throw e;
    } catch (TimeoutException e) {
      return failed(outgoing, e);
    } catch (TransportException | RuntimeException e) {
      boolean done = failed(outgoing, e);
      // Of most other failures a producer does not recover.
      discard();
      closing.await(PAUSE_MS, TimeUnit.MILLISECONDS);
      return done;
    }
  }

  private void give(Outgoing outgoing) throws TransportException, InterruptedException {
    if (broken) {
      discard();
      broken = false;
      closing.await(PAUSE_MS, TimeUnit.MILLISECONDS);
    }
    if (producer == null) {
      producer = producers.create();
    }
    int partition = Math.floorMod(outgoing.lane, producer.partitionsFor(topic).size());
    producer.send(
        new ProducerRecord<>(topic, partition, outgoing.key, outgoing.chunk),
        (metadata, failure) -> finish(outgoing, failure));
  }

  /** On the producer's thread. */
  private void finish(Outgoing outgoing, Exception failure) {
    if (failure == null) {
      outgoing.finish(null);
    } else if (isClosing()) {
      outgoing.finish(closed(where));
    } else {
      TransportException told = TransportFailures.of(where, failure);
      if (told.permanent() && !(failure instanceof RecordTooLargeException)) {
        broken = true;
      }
      outgoing.finish(told);
    }
  }

  /** Whether the attempt was the chunk's last; fails with it all that need not wait longer. */
  private boolean failed(Outgoing outgoing, Exception failure) {
    TransportException told = TransportFailures.of(where, failure);
    if (!told.permanent() && !outgoing.isExpired()) {
      return false;
    }
    List<Outgoing> all = new ArrayList<>(List.of(outgoing));
    synchronized (waiting) {
      while (!waiting.isEmpty() && (told.permanent() || waiting.peek().isExpired())) {
        all.add(waiting.remove());
      }
    }
    all.forEach(one -> one.finish(told));
    return true;
  }

  private void discard() {
    if (producer != null) {
      producer.close(Duration.ZERO);
      producer = null;
    }
  }

  private void end() {
    closing.countDown();
    List<Outgoing> rest = new ArrayList<>();
    synchronized (waiting) {
      open = false;
      waiting.drainTo(rest);
    }
    rest.forEach(outgoing -> outgoing.finish(closed(where)));
    if (producer != null) {
      // Closing waits, too.
      Thread.interrupted();
      producer.close(FLUSH);
    }
  }
}
