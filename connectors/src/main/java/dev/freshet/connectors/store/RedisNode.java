package dev.freshet.connectors.store;

import io.lettuce.core.RedisChannelHandler;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisCommandTimeoutException;
import io.lettuce.core.RedisConnectionStateListener;
import io.lettuce.core.RedisNoScriptException;
import io.lettuce.core.RedisURI;
import io.lettuce.core.ScriptOutputType;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.api.async.RedisAsyncCommands;
import io.lettuce.core.codec.ByteArrayCodec;
import java.io.IOException;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;
import java.util.function.Function;
import org.apache.flink.util.ExceptionUtils;

/**
 * One Redis server and the connection to it. A connection that broke is made anew by the next call;
 * Lettuce's own reconnection is off, because each new connection must first learn which server it
 * reached, and because a refused password must be seen and not retried in the background.
 */
final class RedisNode implements AutoCloseable {

  /** A connection and who was at its other end when it was made. */
  private record Link(StatefulRedisConnection<byte[], byte[]> connection, String identity) {
    RedisAsyncCommands<byte[], byte[]> commands() {
      return connection.async();
    }
  }

  private final RedisClient client;
  private final RedisURI uri;
  private final Consumer<String> onConnected;
  private final Runnable onDisconnected;

  /** The connection, or the attempt to make it; null before the first. */
  private CompletableFuture<Link> link;

  private boolean closed;

  /** The server as it was last asked who it is; null before the first time. */
  private volatile String identity;

  /**
   * @param onConnected takes the server's {@link ServerIdentity} before the first command of a new
   *     connection, and when it is found to have changed since
   * @param onDisconnected called when a connection breaks
   */
  RedisNode(
      RedisClient client, RedisURI uri, Consumer<String> onConnected, Runnable onDisconnected) {
    this.client = client;
    this.uri = uri;
    this.onConnected = onConnected;
    this.onDisconnected = onDisconnected;
  }

  String host() {
    return uri.getHost();
  }

  String address() {
    return uri.getHost() + ":" + uri.getPort();
  }

  /** Connects if necessary. Gives the server's {@link ServerIdentity}. */
  CompletableFuture<String> connect() {
    return link().thenApply(Link::identity);
  }

  /** Asks the server, if it is connected, whether it still has what it had. */
  void check() {
    if (!isConnected()) {
      return;
    }
    // A failure says nothing: a connection that broke is made anew, and asked then.
    var ignored =
        call(commands -> ServerIdentity.ask(commands, address()))
            .thenAccept(
                found -> {
                  if (!found.equals(identity)) {
                    identified(found);
                  }
                });
  }

  private void identified(String found) {
    identity = found;
    onConnected.accept(found);
  }

  /** Whether the connection stands. */
  synchronized boolean isConnected() {
    return isUsable(link) && link.isDone();
  }

  /** The answer to {@code CLUSTER SLOTS}. */
  CompletableFuture<List<Object>> clusterSlots() {
    return call(commands -> commands.clusterSlots().toCompletableFuture());
  }

  /**
   * Runs the script.
   *
   * @param asking whether the keys' slot is on its way to this server
   */
  CompletableFuture<List<Long>> write(byte[][] keys, byte[][] arguments, boolean asking) {
    return call(commands -> evaluate(commands, true, keys, arguments, asking))
        .exceptionallyCompose(
            failure ->
                ExceptionUtils.findThrowable(failure, RedisNoScriptException.class).isPresent()
                    // The server restarted or evicted the script: EVAL brings it back.
                    ? call(commands -> evaluate(commands, false, keys, arguments, asking))
                    : CompletableFuture.failedFuture(failure));
  }

  /** Sets a field of a hash. */
  CompletableFuture<Void> setField(byte[] key, byte[] field, byte[] value) {
    return call(commands -> commands.hset(key, field, value).toCompletableFuture())
        .thenAccept(isNew -> {});
  }

  private synchronized CompletableFuture<List<Long>> evaluate(
      RedisAsyncCommands<byte[], byte[]> commands,
      boolean byDigest,
      byte[][] keys,
      byte[][] arguments,
      boolean asking) {
    if (asking) {
      // The lock keeps the next command on this connection ours, which is the one ASKING is for.
      var ignored = commands.asking();
    }
    return (byDigest
            ? commands.<List<Long>>evalsha(
                WriteScript.DIGEST, ScriptOutputType.MULTI, keys, arguments)
            : commands.<List<Long>>eval(
                WriteScript.SOURCE, ScriptOutputType.MULTI, keys, arguments))
        .toCompletableFuture();
  }

  private <T> CompletableFuture<T> call(
      Function<RedisAsyncCommands<byte[], byte[]>, CompletableFuture<T>> command) {
    return link()
        .thenCompose(
            current ->
                command
                    .apply(current.commands())
                    .whenComplete((answer, failure) -> dropIfSilent(current, failure)));
  }

  /** A server that does not answer in time may be gone without a word: connect anew. */
  private static void dropIfSilent(Link link, Throwable failure) {
    if (failure != null
        && ExceptionUtils.findThrowable(failure, RedisCommandTimeoutException.class).isPresent()) {
      link.connection.closeAsync();
    }
  }

  private synchronized CompletableFuture<Link> link() {
    if (closed) {
      return CompletableFuture.failedFuture(
          new IOException(address() + " is no longer part of the store"));
    }
    if (!isUsable(link)) {
      link = open();
    }
    return link;
  }

  private static boolean isUsable(CompletableFuture<Link> link) {
    return link != null
        && !link.isCompletedExceptionally()
        && (!link.isDone() || link.join().connection.isOpen());
  }

  private CompletableFuture<Link> open() {
    return client
        .connectAsync(ByteArrayCodec.INSTANCE, uri)
        .toCompletableFuture()
        .thenCompose(this::identify)
        .thenApply(
            identified -> {
              identified(identified.identity);
              return identified;
            });
  }

  private CompletableFuture<Link> identify(StatefulRedisConnection<byte[], byte[]> connection) {
    connection.addListener(
        new RedisConnectionStateListener() {
          @Override
          public void onRedisDisconnected(RedisChannelHandler<?, ?> handler) {
            onDisconnected.run();
          }
        });
    return ServerIdentity.ask(connection.async(), address())
        .thenApply(found -> new Link(connection, found))
        .whenComplete(
            (identified, failure) -> {
              if (failure != null) {
                connection.closeAsync();
              }
            });
  }

  @Override
  public synchronized void close() {
    closed = true;
    if (link != null) {
      link.thenAccept(open -> open.connection.closeAsync());
    }
  }
}
