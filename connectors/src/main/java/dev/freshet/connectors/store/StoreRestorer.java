package dev.freshet.connectors.store;

import dev.freshet.connectors.format.DeploymentConfig;
import dev.freshet.schemas.FeatureChange;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.errors.InterruptException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Writes back what the store lost, from the log of changes, on a thread of its own: new writes go
 * on meanwhile, and the version decides between the two.
 *
 * <p>It reads the log twice. When it starts, changes whose writes were acknowledged just before the
 * loss may still be on their way to the log; once {@link #settle} says that they have arrived, it
 * reads on from where it was.
 *
 * <p>Of a table that keeps several versions the newest of each key comes back, and older ones as
 * far as compaction has left them in the log.
 */
final class StoreRestorer implements Runnable {

  private static final Logger LOG = LoggerFactory.getLogger(StoreRestorer.class);
  private static final int BATCH_WRITES = 200;

  /** Hears of a restore; called on its thread. */
  interface Listener {

    /** A batch brought back this many values. */
    void written(long values);

    /** All is back. */
    void restored(StoreRestorer source);

    /** A failure that trying again does not heal. */
    void failed(Throwable failure);
  }

  private final ChangeLog log;
  private final RedisStore store;
  private final DeploymentConfig.Redis redis;
  private final int keepVersions;
  private final Listener listener;
  private final CountDownLatch settled = new CountDownLatch(1);
  private final long settleTimeoutMs;
  private Thread thread;

  /**
   * @param keepVersions how many versions of a key the store keeps
   * @param settleTimeoutMs how long to wait for {@link #settle} at most; {@link Long#MAX_VALUE}
   *     where checkpoints will tell
   */
  StoreRestorer(
      ChangeLog log,
      RedisStore store,
      DeploymentConfig.Redis redis,
      int keepVersions,
      long settleTimeoutMs,
      Listener listener) {
    this.log = log;
    this.store = store;
    this.redis = redis;
    this.keepVersions = keepVersions;
    this.settleTimeoutMs = settleTimeoutMs;
    this.listener = listener;
  }

  /** Starts the thread. */
  void start(String name) {
    thread = new Thread(this, name);
    thread.setDaemon(true);
    // Kafka's client loads its classes through the thread, and the jar is the job's.
    thread.setContextClassLoader(StoreRestorer.class.getClassLoader());
    thread.start();
  }

  /** The changes emitted before the loss are in the log. */
  void settle() {
    settled.countDown();
  }

  /** Ends the thread without waiting for it. */
  void stop() {
    thread.interrupt();
  }

  @Override
  public void run() {
    try (log) {
      readToEnd();
      boolean told = settled.await(settleTimeoutMs, TimeUnit.MILLISECONDS);
      LOG.info("Restoring the rest, {}", told ? "its changes are in the log" : "having waited");
      readToEnd();
      listener.restored(this);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    } catch (RuntimeException e) {
      listener.failed(e);
    }
  }

  private void readToEnd() throws InterruptedException {
    for (int failures = 0; ; ) {
      try {
        log.readToEnd(this::write);
        return;
      } catch (InterruptedException | StoreException e) {
        throw e;
      } catch (InterruptException e) {
        // Kafka's unchecked form of it, which has set the thread's flag again.
        throw new InterruptedException("restoring was ended");
      } catch (Exception e) {
        failures++;
        LOG.warn("Cannot read the changes to restore, attempt {}", failures, e);
        Thread.sleep(Backoff.delayMs(failures));
      }
    }
  }

  private void write(List<FeatureChange> changes) throws InterruptedException {
    List<StoreWrite> batch = new ArrayList<>(BATCH_WRITES);
    for (FeatureChange change : changes) {
      batch.add(StoreWrite.of(change, redis));
      if (batch.size() == BATCH_WRITES) {
        writeBatch(batch);
        batch = new ArrayList<>(BATCH_WRITES);
      }
    }
    writeBatch(batch);
  }

  /** Writes a batch, as often as it takes. */
  private void writeBatch(List<StoreWrite> batch) throws InterruptedException {
    List<StoreWrite> open = batch;
    for (int failures = 0; !open.isEmpty(); ) {
      WriteOutcome outcome = attempt(open);
      List<StoreWrite> unanswered = new ArrayList<>();
      long written = 0;
      for (int i = 0; i < open.size(); i++) {
        switch (outcome.codes()[i]) {
          case WriteCode.UNANSWERED -> unanswered.add(open.get(i));
          case WriteCode.WRITTEN, WriteCode.KEPT_AS_OLDER -> written++;
          default -> {}
        }
      }
      listener.written(written);
      open = unanswered;
      if (!open.isEmpty()) {
        Optional<StoreException> fatal = StoreFailures.fatal(store.address(), outcome.failure());
        if (fatal.isPresent()) {
          throw fatal.get();
        }
        Thread.sleep(Backoff.delayMs(++failures));
      }
    }
  }

  private WriteOutcome attempt(List<StoreWrite> batch) throws InterruptedException {
    try {
      return store.write(batch, keepVersions).get();
    } catch (ExecutionException e) {
      throw new IllegalStateException("an attempt to write tells its failure in its outcome", e);
    }
  }
}
