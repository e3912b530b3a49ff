package dev.freshet.connectors.store;

import dev.freshet.connectors.chunk.ChunkEntry;
import dev.freshet.connectors.chunk.KeyChange;
import dev.freshet.connectors.format.DeploymentConfig;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.apache.flink.api.common.operators.MailboxExecutor;
import org.apache.flink.metrics.MetricGroup;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The online store of a region that takes other regions' changes: writes each change if it is newer
 * than what is there, and tells when all of a group have their answer. Belongs to the task's
 * thread, and is called back on it.
 *
 * <p>Writes go in batches, several at a time, and again for as long as it takes; what waits while
 * they are under way fills the next ones, and a newer change takes the place of one of its key that
 * waits, unless the table keeps several versions. A failure that does not pass, such as a wrong
 * password, fails the job.
 */
public final class RegionStore implements AutoCloseable {

  private static final Logger LOG = LoggerFactory.getLogger(RegionStore.class);

  /** Most bytes of changes without an answer before no more should come. */
  static final long BYTES_MAX = 64 << 20;

  /** The same, as a number of changes: small ones cost mainly their objects. */
  static final int WRITES_MAX = 100_000;

  private static final int KEEP_ONE = 1;

  /**
   * A table that the region keeps.
   *
   * @param name of it
   * @param keepVersions versions of a value that the store keeps, the newest included
   * @param definition in JSON, as clients find it in the store; null if it is not known
   */
  public record Table(String name, int keepVersions, String definition) {}

  /** Hears what happens to the store. */
  public interface Listener {

    /** Servers are connected. What they lost was told before. */
    void connected();

    /**
     * A server is new, was restarted or was emptied, so what was acknowledged may be gone. Later
     * answers are of what it is now.
     *
     * @param servers those that are connected, each by its run id and how often it was emptied
     */
    void lost(Set<String> servers);
  }

  /** Hears what became of a group of changes. */
  public interface Answers {

    /** The store has answered a change. */
    void answered(KeyChange change, StoreAnswer answer);

    /** A newer change of its key was written in place of a change, and the store has answered. */
    void superseded();

    /** All changes of the group have their answer. */
    void complete();
  }

  /** Changes that were given together. */
  private final class Group {
    private final Answers answers;
    private int unanswered;
    private long bytes;

    Group(Answers answers, int unanswered) {
      this.answers = answers;
      this.unanswered = unanswered;
    }

    void add(StoreWrite write) {
      bytes += write.bytes();
      unansweredBytes += write.bytes();
      unansweredWrites++;
    }

    void settle(KeyChange change, StoreAnswer answer) {
      answers.answered(change, answer);
      settleOne();
    }

    void supersede() {
      answers.superseded();
      settleOne();
    }

    private void settleOne() {
      unansweredWrites--;
      if (--unanswered == 0) {
        unansweredBytes -= bytes;
        answers.complete();
      }
    }
  }

  /** A change to be written, which stands for older ones of its key that were to be written. */
  private static final class RegionWrite implements PendingWrite {
    private final KeyChange change;
    private final StoreWrite write;
    private final Group group;

    /** Groups of the older ones; null for none. */
    private List<Group> older;

    RegionWrite(KeyChange change, StoreWrite write, Group group) {
      this.change = change;
      this.write = write;
      this.group = group;
    }

    @Override
    public String key() {
      return change.key();
    }

    @Override
    public StoreWrite write() {
      return write;
    }

    /** Takes the place of an older one of its key. */
    void standFor(RegionWrite other) {
      if (older == null) {
        older = other.older == null ? new ArrayList<>() : other.older;
      }
      older.add(other.group);
    }

    void settle(StoreAnswer answer) {
      group.settle(change, answer);
      if (older != null) {
        older.forEach(Group::supersede);
      }
    }
  }

  /** What a store of one version would not keep needs no write (log-less, as on a link). */
  private static RegionWrite newest(RegionWrite waiting, RegionWrite next) {
    RegionWrite newest = next.change.isNewerThan(waiting.change) ? next : waiting;
    newest.standFor(newest == next ? waiting : next);
    return newest;
  }

  /** The writes of one table. */
  private final class TableWriter implements BatchSender.Listener<RegionWrite> {
    private final WriteBuffer<RegionWrite> buffer;
    private final BatchSender<RegionWrite> sender;

    TableWriter(String table) {
      Table known = tables.get(table);
      int keepVersions = known == null ? KEEP_ONE : known.keepVersions();
      buffer =
          keepVersions == KEEP_ONE ? new WriteBuffer<>(RegionStore::newest) : new WriteBuffer<>();
      sender =
          new BatchSender<>(
              buffer,
              connection.store(),
              keepVersions,
              mail,
              new StoreMetrics(StoreMetrics.tableGroup(metrics, table)),
              this);
    }

    @Override
    public void settled(RegionWrite write, int code) {
      answeredNanos = System.nanoTime();
      write.settle(StoreAnswer.of(code));
    }

    @Override
    public void answered() {}
  }

  private final DeploymentConfig.Redis redis;
  private final Map<String, Table> tables = new HashMap<>();
  private final MetricGroup metrics;
  private final Listener listener;
  private final StoreIdentity identity;
  private final TaskMail mail;
  private final StoreConnection connection;
  private final Map<String, TableWriter> writers = new HashMap<>();
  private boolean isIdentified;

  /** Of all groups that have not all their answers: what they keep in memory. */
  private long unansweredBytes;

  private int unansweredWrites;

  /** When the store last answered a write, or had none to answer; {@link System#nanoTime}. */
  private long answeredNanos = System.nanoTime();

  /**
   * @param threadName name of the thread that waits between attempts
   * @param tables that are known; of others one version is kept, and clients are told nothing
   * @param identities what all subtasks gave as {@link #identity} before; empty at the first start
   */
  public RegionStore(
      DeploymentConfig.Redis redis,
      Collection<Table> tables,
      Iterable<String> identities,
      MailboxExecutor mailbox,
      String threadName,
      MetricGroup metrics,
      Listener listener) {
    this.redis = redis;
    tables.forEach(table -> this.tables.put(table.name(), table));
    this.metrics = metrics;
    this.listener = listener;
    this.identity = StoreIdentity.join(identities);
    this.mail = new TaskMail(mailbox, threadName);
    this.connection = new StoreConnection(redis, identity, mail, new ServerEvents());
  }

  /**
   * Whether subtasks of an earlier run had met different servers: what some of them knew was lost,
   * and the others had not noticed yet.
   */
  public static boolean isLossUnnoticed(Iterable<String> identities) {
    return StoreIdentity.join(identities).isRestorePending();
  }

  /** Connects. */
  public void start() {
    identity.restored();
    connection.start();
  }

  /** Which servers the store has had, for a later run to notice that one was lost. */
  public String identity() {
    return identity.toState();
  }

  /** Whether its servers have been met in this run, so that a loss before it was told. */
  public boolean isIdentified() {
    return isIdentified;
  }

  /** Hears of the store's servers. */
  private final class ServerEvents implements StoreConnection.Listener {
    @Override
    public void connected(Set<String> servers, boolean isLost) {
      isIdentified = true;
      if (isLost) {
        identity.restored();
        listener.lost(servers);
      }
      tables.values().stream()
          .filter(table -> table.definition() != null)
          .forEach(
              table ->
                  TableRegistry.enter(
                      connection.store(), redis.prefix(), table.name(), table.definition()));
      listener.connected();
    }

    @Override
    public void whole() {
      LOG.debug("All servers of {} are connected", connection.store().address());
    }
  }

  /**
   * Writes changes of a table.
   *
   * @param answers told at once if there are none
   */
  public void write(String table, List<ChunkEntry> changes, Answers answers) {
    if (changes.isEmpty()) {
      answers.complete();
      return;
    }
    if (isIdle()) {
      answeredNanos = System.nanoTime();
    }
    TableWriter writer = writers.computeIfAbsent(table, TableWriter::new);
    Group group = new Group(answers, changes.size());
    for (ChunkEntry entry : changes) {
      KeyChange change = entry.change();
      StoreWrite write = StoreWrite.of(table, change, redis);
      group.add(write);
      writer.buffer.add(new RegionWrite(change, write, group));
    }
    writer.sender.sendAll();
  }

  /** Whether no more changes should come until some are answered. */
  public boolean isFull() {
    return unansweredBytes >= BYTES_MAX || unansweredWrites >= WRITES_MAX;
  }

  /** Whether every change has its answer. */
  public boolean isIdle() {
    for (TableWriter writer : writers.values()) {
      if (!writer.sender.isIdle()) {
        return false;
      }
    }
    return true;
  }

  /** How long the store has owed an answer without giving any, ms; 0 if it owes none. */
  public long silentMs() {
    return isIdle() ? 0 : TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - answeredNanos);
  }

  /** Where the store is, without its credentials. */
  public String address() {
    return connection.store().address();
  }

  @Override
  public void close() {
    mail.close();
    connection.close();
  }
}
