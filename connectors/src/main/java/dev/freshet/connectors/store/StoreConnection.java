package dev.freshet.connectors.store;

import dev.freshet.connectors.format.DeploymentConfig;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Keeps the store's servers connected, and notices when one of them may have lost data. Belongs to
 * the task's thread.
 */
final class StoreConnection implements AutoCloseable {

  /** How often servers are asked whether they were emptied, ms. */
  static final long CHECK_MS = 2_000;

  /** Hears what happens to the store; called on the task's thread. */
  interface Listener {

    /**
     * Servers are connected.
     *
     * @param servers {@link ServerIdentity} of each
     * @param isLost whether one of them is new to a store that was known, or was emptied, so that
     *     data may be lost
     */
    void connected(Set<String> servers, boolean isLost);

    /** Every server is connected, as far as is known. */
    void whole();
  }

  private final StoreIdentity identity;
  private final TaskMail mail;
  private final Listener listener;
  private final RedisStore store;
  private boolean connecting;

  /** Servers that are connected and not yet known to the task's thread; counted on any thread. */
  private final AtomicInteger unheard = new AtomicInteger();

  /**
   * @param identity which servers the store had before
   */
  StoreConnection(
      DeploymentConfig.Redis redis, StoreIdentity identity, TaskMail mail, Listener listener) {
    this.identity = identity;
    this.mail = mail;
    this.listener = listener;
    this.store = new RedisStore(redis, new ServerEvents());
  }

  RedisStore store() {
    return store;
  }

  /** Connects. */
  void start() {
    connect(0);
    checkLater();
  }

  private void checkLater() {
    mail.sendLater(
        CHECK_MS,
        "ask the store's servers whether they were emptied",
        () -> {
          store.check();
          checkLater();
        });
  }

  /** Sends what happens to connections to the task's thread. */
  private final class ServerEvents implements StoreListener {
    @Override
    public void connected(Set<String> servers) {
      unheard.incrementAndGet();
      mail.send("identify the store's servers", () -> onConnected(servers));
    }

    @Override
    public void disconnected() {
      mail.send("connect to the store again", () -> connect(0));
    }
  }

  private void onConnected(Set<String> servers) {
    boolean isLost = identity.connected(servers);
    unheard.decrementAndGet();
    listener.connected(servers, isLost);
  }

  /**
   * Whether every server is connected, and the task's thread knows which ones they are: until then
   * one may be there that has lost its data, and nobody has noticed.
   */
  boolean isKnown() {
    // In this order: a server is counted before it is connected.
    return store.isConnected() && unheard.get() == 0;
  }

  /** Keeps trying until every server is connected, so that a loss is noticed without writes. */
  private void connect(int failures) {
    if (failures == 0 && connecting) {
      return;
    }
    connecting = true;
    store
        .connect()
        .whenComplete(
            (done, failure) ->
                mail.send("see the store's servers", () -> onConnect(failures, failure)));
  }

  private void onConnect(int failures, Throwable failure) {
    if (failure == null) {
      connecting = false;
      listener.whole();
      return;
    }
    Optional<StoreException> fatal = StoreFailures.fatal(store.address(), failure);
    if (fatal.isPresent()) {
      throw fatal.get();
    }
    mail.sendLater(
        Backoff.delayMs(failures + 1), "connect to the store again", () -> connect(failures + 1));
  }

  @Override
  public void close() {
    store.close();
  }
}
