package dev.freshet.connectors.store;

import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Sends writes to the store in batches, several at a time, and each batch as often as it takes.
 * Belongs to the task's thread.
 *
 * <p>A batch that fails is sent again with growing waits; what was answered of it is settled. A
 * failure that does not pass, such as a wrong password, fails the job. Writes of one key are sent
 * one after the other ({@link WriteBuffer}).
 */
final class BatchSender<W extends PendingWrite> {

  private static final Logger LOG = LoggerFactory.getLogger(BatchSender.class);

  /** Enough to keep Redis busy over a round trip. */
  static final int BATCHES_IN_FLIGHT_MAX = 4;

  /** Takes what became of each write; called on the task's thread. */
  interface Listener<W> {

    /** The store has answered a write with this {@link WriteCode}. */
    void settled(W write, int code);

    /** All answers of a batch that came at once are settled. */
    void answered();
  }

  private final WriteBuffer<W> buffer;
  private final RedisStore store;
  private final int keepVersions;
  private final TaskMail mail;
  private final StoreMetrics metrics;
  private final Listener<W> listener;
  private final Set<WriteBatch<W>> inFlight = new LinkedHashSet<>();

  /** Whether what waits has waited long enough not to wait for a full batch. */
  private boolean lingered;

  /**
   * @param keepVersions how many versions of a key the store keeps
   */
  BatchSender(
      WriteBuffer<W> buffer,
      RedisStore store,
      int keepVersions,
      TaskMail mail,
      StoreMetrics metrics,
      Listener<W> listener) {
    this.buffer = buffer;
    this.store = store;
    this.keepVersions = keepVersions;
    this.mail = mail;
    this.metrics = metrics;
    this.listener = listener;
  }

  /** Sends what is due: full batches, and after the linger time all that may go. */
  void send() {
    while (!buffer.isEmpty()
        && inFlight.size() < BATCHES_IN_FLIGHT_MAX
        && (lingered || buffer.isFull())) {
      WriteBatch<W> batch = buffer.next();
      if (batch.writes().isEmpty()) {
        return;
      }
      inFlight.add(batch);
      attempt(batch);
    }
    if (buffer.isEmpty()) {
      lingered = false;
    }
  }

  /** Sends also what does not fill a batch. */
  void sendAll() {
    lingered = true;
    send();
  }

  /** Whether no more writes may come until some are answered. */
  boolean isFull() {
    return buffer.isFull()
        && (inFlight.size() >= BATCHES_IN_FLIGHT_MAX || buffer.holds(BATCHES_IN_FLIGHT_MAX + 1));
  }

  /** Whether every write has its answer. */
  boolean isIdle() {
    return buffer.isEmpty() && inFlight.isEmpty();
  }

  /** Writes that are not acknowledged, those of one key in their order. */
  List<W> pending() {
    List<W> pending = new ArrayList<>();
    inFlight.forEach(batch -> pending.addAll(batch.writes()));
    pending.addAll(buffer.waiting());
    return pending;
  }

  private void attempt(WriteBatch<W> batch) {
    store
        .write(batch.sent(System.nanoTime()), keepVersions)
        .thenAccept(
            outcome -> mail.send("take the store's answer", () -> onAnswer(batch, outcome)));
  }

  private void onAnswer(WriteBatch<W> batch, WriteOutcome outcome) {
    metrics.storeLatencyMicros.update(
        TimeUnit.NANOSECONDS.toMicros(System.nanoTime() - batch.sentNanos()));
    List<W> unanswered = new ArrayList<>();
    List<W> sent = batch.writes();
    for (int i = 0; i < sent.size(); i++) {
      if (outcome.codes()[i] == WriteCode.UNANSWERED) {
        unanswered.add(sent.get(i));
      } else {
        buffer.answered(sent.get(i));
        listener.settled(sent.get(i), outcome.codes()[i]);
      }
    }
    if (unanswered.isEmpty()) {
      inFlight.remove(batch);
    } else {
      retry(batch, unanswered, outcome.failure());
    }
    send();
    listener.answered();
  }

  private void retry(WriteBatch<W> batch, List<W> unanswered, Throwable failure) {
    Optional<StoreException> fatal = StoreFailures.fatal(store.address(), failure);
    if (fatal.isPresent()) {
      throw fatal.get();
    }
    int failures = batch.failed(unanswered);
    metrics.storeRetries.inc();
    if (Integer.bitCount(failures) == 1) {
      LOG.warn(
          "{} writes got no answer from {}, attempt {}",
          unanswered.size(),
          store.address(),
          failures,
          failure);
    }
    mail.sendLater(Backoff.delayMs(failures), "write a batch again", () -> attempt(batch));
  }
}
