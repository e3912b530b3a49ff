package dev.freshet.connectors.store;

import static java.nio.charset.StandardCharsets.US_ASCII;

import dev.freshet.connectors.format.DeploymentConfig;
import dev.freshet.connectors.secret.Secrets;
import io.lettuce.core.ClientOptions;
import io.lettuce.core.ClientOptions.DisconnectedBehavior;
import io.lettuce.core.MaintNotificationsConfig;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisURI;
import io.lettuce.core.SocketOptions;
import io.lettuce.core.SslOptions;
import io.lettuce.core.TimeoutOptions;
import io.lettuce.core.cluster.SlotHash;
import io.lettuce.core.resource.ClientResources;
import io.lettuce.core.resource.DefaultClientResources;
import java.io.File;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Collectors;
import org.apache.flink.util.ExceptionUtils;

/**
 * The online store: conditional writes in batches, on one Redis or a Redis Cluster. A call makes
 * one attempt; trying again is the caller's, who knows what is worth it. Thread-safe.
 *
 * <p>In a cluster a batch is split by hash slot, since a script's keys must share one, and the
 * parts travel in one pipeline to each master.
 */
final class RedisStore implements AutoCloseable {

  /** A round trip takes about a millisecond; a server that takes this long is not there. */
  private static final Duration COMMAND_TIMEOUT = Duration.ofSeconds(10);

  private static final Duration CONNECT_TIMEOUT = Duration.ofSeconds(3);
  private static final long SHUTDOWN_TIMEOUT_S = 2;

  /** One subtask has a few connections; Lettuce's default is one thread a core. */
  private static final int THREADS = 2;

  private final boolean cluster;
  private final List<RedisURI> seeds;
  private final StoreListener listener;
  private final ClientResources resources;
  private final RedisClient client;
  private final Map<String, RedisNode> nodes = new ConcurrentHashMap<>();

  /** The first contact with every master, or the attempt; null before the first. */
  private CompletableFuture<Void> contact;

  /** The cluster's slots, or the attempt to read them; null before the first and when stale. */
  private CompletableFuture<SlotTable> slots;

  private volatile boolean contacted;

  RedisStore(DeploymentConfig.Redis config, StoreListener listener) {
    this.cluster = config.cluster();
    this.listener = listener;
    this.seeds = Arrays.stream(config.url().split(",")).map(RedisStore::seed).toList();
    this.resources =
        DefaultClientResources.builder()
            .ioThreadPoolSize(THREADS)
            .computationThreadPoolSize(THREADS)
            .build();
    this.client = RedisClient.create(resources);
    client.setOptions(
        ClientOptions.builder()
            .autoReconnect(false)
            .disconnectedBehavior(DisconnectedBehavior.REJECT_COMMANDS)
            .maintNotificationsConfig(MaintNotificationsConfig.disabled())
            .socketOptions(
                SocketOptions.builder().connectTimeout(CONNECT_TIMEOUT).keepAlive(true).build())
            .timeoutOptions(TimeoutOptions.enabled(COMMAND_TIMEOUT))
            .sslOptions(tls(config))
            .build());
  }

  private static SslOptions tls(DeploymentConfig.Redis config) {
    SslOptions.Builder options = SslOptions.builder().jdkSslProvider();
    if (config.ca() != null) {
      options.trustManager(new File(config.ca()));
    }
    if (config.certificate() != null) {
      options.keyManager(new File(config.certificate()), new File(config.key()), null);
    }
    return options.build();
  }

  /** The address with its secrets, which are looked up here and now. */
  private static RedisURI seed(String url) {
    String resolved = Secrets.resolveUrl(url);
    try {
      return RedisURI.create(resolved);
    } catch (IllegalArgumentException e) {
      // Neither it nor its cause may go on: both quote the URL with the password.
      throw new StoreException(
          "redis.url is no redis:// URL; a password that is written out must be percent-encoded",
          null);
    }
  }

  /** Where the store is, without its credentials. */
  String address() {
    return seeds.stream().map(RedisStore::address).collect(Collectors.joining(","));
  }

  /** Whether every master that is known is connected and has been identified. */
  boolean isConnected() {
    return contacted && masters().stream().allMatch(RedisNode::isConnected);
  }

  /** Asks every connected master whether it was emptied; the listener hears of it. */
  void check() {
    masters().forEach(RedisNode::check);
  }

  /** Connects to every master that is not connected. */
  CompletableFuture<Void> connect() {
    return contact().thenCompose(done -> connectMasters()).thenAccept(servers -> {});
  }

  /**
   * Makes one attempt to write a batch. The future never fails.
   *
   * @param keepVersions how many versions of a key the store keeps
   */
  CompletableFuture<WriteOutcome> write(List<StoreWrite> batch, int keepVersions) {
    int[] codes = new int[batch.size()];
    Arrays.fill(codes, WriteCode.UNANSWERED);
    AtomicReference<Throwable> failure = new AtomicReference<>();
    return contact()
        .thenCompose(
            done ->
                cluster
                    ? writeBySlot(batch, keepVersions, codes, failure)
                    : writeWhole(batch, keepVersions, codes))
        .handle(
            (done, failed) -> {
              if (failed != null) {
                failure.compareAndSet(null, failed);
              }
              return new WriteOutcome(codes, failure.get());
            });
  }

  /** Sets a field of a hash, in one attempt. */
  CompletableFuture<Void> setField(byte[] key, byte[] field, byte[] value) {
    if (!cluster) {
      return node(seeds.get(0)).setField(key, field, value);
    }
    return slots()
        .thenCompose(
            table -> {
              String master = table.master(SlotHash.getSlot(key));
              return master == null
                  ? CompletableFuture.failedFuture(
                      new IOException("no server holds the hash slot of the registry"))
                  : node(master).setField(key, field, value);
            });
  }

  private CompletableFuture<Void> writeWhole(
      List<StoreWrite> batch, int keepVersions, int[] codes) {
    int[] all = new int[batch.size()];
    Arrays.setAll(all, i -> i);
    return writePart(node(seeds.get(0)), batch, keepVersions, all, codes, false)
        .exceptionallyCompose(
            failed ->
                CompletableFuture.failedFuture(
                    StoreFailures.isError(failed, "MOVED")
                        ? new StoreException(
                            address() + " is part of a Redis Cluster; set redis.cluster to true",
                            failed)
                        : failed));
  }

  private CompletableFuture<Void> writeBySlot(
      List<StoreWrite> batch, int keepVersions, int[] codes, AtomicReference<Throwable> failure) {
    Map<Integer, List<Integer>> bySlot = new LinkedHashMap<>();
    for (int i = 0; i < batch.size(); i++) {
      bySlot.computeIfAbsent(SlotHash.getSlot(batch.get(i).key()), s -> new ArrayList<>()).add(i);
    }
    return slots()
        .thenCompose(
            table -> {
              List<CompletableFuture<Void>> parts = new ArrayList<>();
              bySlot.forEach(
                  (slot, at) -> {
                    int[] part = at.stream().mapToInt(Integer::intValue).toArray();
                    parts.add(
                        writeSlot(table.master(slot), batch, keepVersions, part, codes)
                            .exceptionally(
                                failed -> {
                                  failure.compareAndSet(null, failed);
                                  return null;
                                }));
                  });
              return CompletableFuture.allOf(parts.toArray(CompletableFuture[]::new));
            });
  }

  private CompletableFuture<Void> writeSlot(
      String master, List<StoreWrite> batch, int keepVersions, int[] part, int[] codes) {
    if (master == null) {
      forgetSlots();
      return CompletableFuture.failedFuture(
          new IOException("no server holds the hash slot of a key; the cluster is not whole"));
    }
    return writePart(node(master), batch, keepVersions, part, codes, false)
        .exceptionallyCompose(
            failed -> {
              String importer = StoreRedirects.askTarget(failed);
              if (importer != null) {
                return writePart(node(importer), batch, keepVersions, part, codes, true);
              }
              // Moved, failed over or gone: the next attempt reads who holds what.
              forgetSlots();
              return CompletableFuture.failedFuture(failed);
            });
  }

  /** Writes the part of a batch at these indices and fills in their codes. */
  private CompletableFuture<Void> writePart(
      RedisNode node,
      List<StoreWrite> batch,
      int keepVersions,
      int[] part,
      int[] codes,
      boolean asking) {
    byte[][] keys = new byte[part.length][];
    boolean several = keepVersions > 1;
    byte[][] arguments = new byte[2 * part.length + (several ? 1 : 0)][];
    for (int i = 0; i < part.length; i++) {
      StoreWrite write = batch.get(part[i]);
      keys[i] = write.key();
      arguments[2 * i] = write.value();
      arguments[2 * i + 1] = write.expiryArgument();
    }
    if (several) {
      arguments[2 * part.length] = Integer.toString(keepVersions).getBytes(US_ASCII);
    }
    return node.write(keys, arguments, asking)
        .thenAccept(
            answers -> {
              for (int i = 0; i < part.length; i++) {
                codes[part[i]] = answers.get(i).intValue();
              }
            });
  }

  // Servers.

  private synchronized CompletableFuture<Void> contact() {
    if (contact == null || contact.isCompletedExceptionally()) {
      contact =
          connectMasters()
              .thenAccept(
                  servers -> {
                    listener.connected(servers);
                    contacted = true;
                  });
    }
    return contact;
  }

  private CompletableFuture<Set<String>> connectMasters() {
    if (!cluster) {
      return node(seeds.get(0)).connect().thenApply(Set::of);
    }
    return slots()
        .thenCompose(
            table -> {
              List<CompletableFuture<String>> servers =
                  table.masters().stream().map(master -> node(master).connect()).toList();
              return CompletableFuture.allOf(servers.toArray(CompletableFuture[]::new))
                  .thenApply(
                      done ->
                          servers.stream()
                              .map(CompletableFuture::join)
                              .collect(Collectors.toSet()));
            })
        .whenComplete(
            (servers, failed) -> {
              if (failed != null) {
                forgetSlots();
              }
            });
  }

  private Collection<RedisNode> masters() {
    CompletableFuture<SlotTable> table;
    synchronized (this) {
      table = slots;
    }
    if (!cluster) {
      return List.of(node(seeds.get(0)));
    }
    if (table == null || !table.isDone() || table.isCompletedExceptionally()) {
      return nodes.values();
    }
    return table.join().masters().stream().map(this::node).toList();
  }

  private synchronized void forgetSlots() {
    if (slots != null && slots.isDone()) {
      slots = null;
    }
  }

  private synchronized CompletableFuture<SlotTable> slots() {
    if (slots == null || slots.isCompletedExceptionally()) {
      List<RedisNode> candidates = new ArrayList<>(nodes.values());
      seeds.stream().map(this::node).filter(n -> !candidates.contains(n)).forEach(candidates::add);
      // Servers that stand are asked before those that may be gone.
      candidates.sort((a, b) -> Boolean.compare(b.isConnected(), a.isConnected()));
      slots = askForSlots(candidates, 0).thenApply(this::forgetOtherNodes);
    }
    return slots;
  }

  /** Closes connections to servers that are no masters any more; seeds are asked again later. */
  private SlotTable forgetOtherNodes(SlotTable table) {
    Set<String> kept = new HashSet<>(table.masters());
    seeds.forEach(seed -> kept.add(address(seed)));
    nodes.forEach(
        (address, node) -> {
          if (!kept.contains(address) && nodes.remove(address, node)) {
            node.close();
          }
        });
    return table;
  }

  private CompletableFuture<SlotTable> askForSlots(List<RedisNode> candidates, int at) {
    RedisNode asked = candidates.get(at);
    return asked
        .clusterSlots()
        .thenApply(answer -> SlotTable.parse(answer, asked.host()))
        .exceptionallyCompose(
            failed ->
                at + 1 < candidates.size()
                    ? askForSlots(candidates, at + 1)
                    : CompletableFuture.failedFuture(
                        ExceptionUtils.stripCompletionException(failed)));
  }

  private RedisNode node(String address) {
    int colon = address.lastIndexOf(':');
    return node(
        RedisURI.builder(seeds.get(0))
            .withHost(address.substring(0, colon))
            .withPort(Integer.parseInt(address.substring(colon + 1)))
            .build());
  }

  private RedisNode node(RedisURI uri) {
    return nodes.computeIfAbsent(
        address(uri),
        address -> new RedisNode(client, uri, this::connected, listener::disconnected));
  }

  private static String address(RedisURI uri) {
    return uri.getHost() + ":" + uri.getPort();
  }

  private void connected(String server) {
    if (contacted) {
      listener.connected(Set.of(server));
    }
  }

  @Override
  public void close() {
    nodes.values().forEach(RedisNode::close);
    client.shutdown(0, SHUTDOWN_TIMEOUT_S, TimeUnit.SECONDS);
    resources.shutdown(0, SHUTDOWN_TIMEOUT_S, TimeUnit.SECONDS).awaitUninterruptibly();
  }
}
