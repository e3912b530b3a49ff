package dev.freshet.connectors.testing;

import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisURI;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.api.sync.RedisCommands;
import io.lettuce.core.codec.ByteArrayCodec;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.flink.util.FileUtils;
import redis.embedded.RedisExecProvider;

/** A real Redis server on loopback that can be killed and started again on its port. */
public final class TestRedis implements AutoCloseable {

  private static final String HOST = "127.0.0.1";

  private final int port;
  private final List<String> settings;
  private final Path directory;
  private Process process;

  private TestRedis(int port, List<String> settings) throws IOException {
    this.port = port;
    this.settings = settings;
    this.directory = Files.createTempDirectory("freshet-redis");
  }

  /** Starts a server on a free port, with further command-line settings. */
  public static TestRedis start(String... settings) throws Exception {
    TestRedis redis = new TestRedis(freePort(), List.of(settings));
    redis.restart();
    return redis;
  }

  /** A free port; the cluster's bus takes the port 10,000 above, so both exist. */
  public static int freePort() throws IOException {
    while (true) {
      try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getByName(HOST))) {
        if (socket.getLocalPort() < 55_000) {
          return socket.getLocalPort();
        }
      }
    }
  }

  /** Starts the server again after {@link #kill}; it comes back empty. */
  public void restart() throws Exception {
    List<String> command = new ArrayList<>();
    command.add(RedisExecProvider.defaultProvider().get().getAbsolutePath());
    command.addAll(List.of("--port", String.valueOf(port), "--bind", HOST));
    command.addAll(List.of("--save", "", "--appendonly", "no", "--dir", directory.toString()));
    command.addAll(settings);
    process =
        new ProcessBuilder(command)
            .redirectErrorStream(true)
            .redirectOutput(directory.resolve("redis.log").toFile())
            .start();
    Await.until(
        "Redis listens on port " + port + "; its log is " + directory.resolve("redis.log"),
        () -> {
          if (!process.isAlive()) {
            throw new AssertionError(Files.readString(directory.resolve("redis.log")));
          }
          try (Socket socket = new Socket(HOST, port)) {
            return socket.isConnected();
          } catch (IOException e) {
            return false;
          }
        });
  }

  /** Kills the server, as a crash would. */
  public void kill() throws InterruptedException {
    process.destroyForcibly();
    if (!process.waitFor(10, TimeUnit.SECONDS)) {
      throw new AssertionError("Redis on port " + port + " survived SIGKILL");
    }
  }

  /** Sends a signal: STOP makes it fall silent with its connections open, CONT wakes it. */
  public void signal(String name) throws Exception {
    Process kill = new ProcessBuilder("kill", "-" + name, String.valueOf(process.pid())).start();
    if (kill.waitFor() != 0) {
      throw new AssertionError("cannot send SIG" + name + " to Redis");
    }
  }

  public int port() {
    return port;
  }

  public String url() {
    return "redis://" + HOST + ":" + port;
  }

  /** A client of its own, to look from outside. */
  public Inspector inspect() {
    return new Inspector(RedisClient.create(RedisURI.create(url())));
  }

  @Override
  public void close() throws Exception {
    kill();
    FileUtils.deleteDirectory(directory.toFile());
  }

  /** A plain client. */
  public static final class Inspector implements AutoCloseable {
    private final RedisClient client;
    private final StatefulRedisConnection<byte[], byte[]> connection;

    private Inspector(RedisClient client) {
      this.client = client;
      this.connection = client.connect(ByteArrayCodec.INSTANCE);
    }

    public RedisCommands<byte[], byte[]> commands() {
      return connection.sync();
    }

    @Override
    public void close() {
      connection.close();
      client.shutdown(0, 1, TimeUnit.SECONDS);
    }
  }
}
