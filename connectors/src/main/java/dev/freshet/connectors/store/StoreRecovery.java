package dev.freshet.connectors.store;

import dev.freshet.connectors.format.DeploymentConfig;
import dev.freshet.connectors.format.TableConfig;
import java.util.Set;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Has what a server of the store may have lost ({@link StoreConnection}) written back ({@link
 * StoreRestorer}). Belongs to the task's thread.
 */
final class StoreRecovery implements AutoCloseable {

  private static final Logger LOG = LoggerFactory.getLogger(StoreRecovery.class);

  /** How long changes may be on their way to Kafka where no checkpoint tells. */
  static final long RESTORE_SETTLE_MS = 10_000;

  /** Hears what happens to the store; called on the task's thread. */
  interface Listener {

    /** Servers are connected, which may have been empty before. */
    void connected();

    /** The store may be complete now. */
    void changed();
  }

  /** Whose part of the log is written back. */
  record Reader(int subtask, int parallelism) {}

  private final TableConfig table;
  private final DeploymentConfig deployment;
  private final ChangeLog.Factory changeLogs;
  private final Reader reader;
  private final boolean checkpointing;
  private final StoreIdentity identity;
  private final TaskMail mail;
  private final WriterMetrics metrics;
  private final Listener listener;
  private final StoreConnection connection;
  private final RedisStore store;

  private StoreRestorer restorer;
  private SettledCheckpoint settledCheckpoint;

  /**
   * @param changeLogs opens the log that the store is restored from
   * @param checkpointing whether checkpoints tell that changes have arrived in the log
   * @param identity which servers the store had before
   */
  StoreRecovery(
      TableConfig table,
      DeploymentConfig deployment,
      ChangeLog.Factory changeLogs,
      Reader reader,
      boolean checkpointing,
      StoreIdentity identity,
      TaskMail mail,
      WriterMetrics metrics,
      Listener listener) {
    this.table = table;
    this.deployment = deployment;
    this.changeLogs = changeLogs;
    this.reader = reader;
    this.checkpointing = checkpointing;
    this.identity = identity;
    this.mail = mail;
    this.metrics = metrics;
    this.listener = listener;
    this.connection = new StoreConnection(deployment.redis(), identity, mail, new ServerEvents());
    this.store = connection.store();
  }

  RedisStore store() {
    return store;
  }

  /** Connects, and goes on with a restore that was under way when the job stopped. */
  void start() {
    if (identity.isRestorePending()) {
      startRestoring("a restore was under way when the job stopped");
    }
    connection.start();
  }

  /** Whether the store has all that was acknowledged, as far as is known. */
  boolean isComplete() {
    return connection.isKnown() && !identity.isRestorePending();
  }

  /** This subtask took its snapshot. */
  void checkpointStarted(long checkpointId) {
    if (settledCheckpoint != null) {
      settledCheckpoint.started(checkpointId);
    }
  }

  /** A checkpoint completed. */
  void checkpointCompleted(long checkpointId) {
    if (settledCheckpoint != null && settledCheckpoint.completed(checkpointId)) {
      settledCheckpoint = null;
      restorer.settle();
    }
  }

  /** No checkpoint completes any more: what is under way to the log arrives by time. */
  void finish() {
    if (settledCheckpoint != null) {
      StoreRestorer current = restorer;
      mail.sendLater(RESTORE_SETTLE_MS, "restore the rest", current::settle);
    }
  }

  /** Hears of the store's servers. */
  private final class ServerEvents implements StoreConnection.Listener {
    @Override
    public void connected(Set<String> servers, boolean isLost) {
      if (isLost) {
        startRestoring("a server of the store is new, restarted or was emptied: " + servers);
      }
      listener.connected();
      listener.changed();
    }

    @Override
    public void whole() {
      listener.changed();
    }
  }

  private void startRestoring(String reason) {
    LOG.warn(
        "Restoring table {} to {} from topic {}: {}",
        table.table(),
        store.address(),
        table.changesTopic(),
        reason);
    if (restorer != null) {
      restorer.stop();
    }
    settledCheckpoint = checkpointing ? new SettledCheckpoint() : null;
    restorer =
        new StoreRestorer(
            changeLogs.open(table, deployment, reader.subtask, reader.parallelism),
            store,
            deployment.redis(),
            table.keepVersions(),
            checkpointing ? Long.MAX_VALUE : RESTORE_SETTLE_MS,
            new RestoreEvents());
    restorer.start("freshet-restore-" + table.table() + "-" + reader.subtask);
  }

  /** Sends what a restorer tells to the task's thread. */
  private final class RestoreEvents implements StoreRestorer.Listener {
    @Override
    public void written(long values) {
      mail.send("count restored values", () -> metrics.writesRestored.inc(values));
    }

    @Override
    public void restored(StoreRestorer source) {
      mail.send("release what waited for the restore", () -> onRestored(source));
    }

    @Override
    public void failed(Throwable failure) {
      mail.send(
          "fail the job",
          () -> {
            throw new IllegalStateException(
                "table " + table.table() + " cannot be restored to " + store.address(), failure);
          });
    }
  }

  private void onRestored(StoreRestorer source) {
    if (source != restorer) {
      // Another loss has started another restore since.
      return;
    }
    LOG.info("Table {} is restored to {}", table.table(), store.address());
    restorer = null;
    identity.restored();
    listener.changed();
  }

  @Override
  public void close() {
    if (restorer != null) {
      restorer.stop();
    }
    connection.close();
  }
}
