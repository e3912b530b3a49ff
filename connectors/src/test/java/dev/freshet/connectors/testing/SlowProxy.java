package dev.freshet.connectors.testing;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.Arrays;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/** A way to a server on loopback that takes time, and that can be cut without closing anything. */
public final class SlowProxy implements AutoCloseable {

  private static final int PIECE_BYTES = 64 * 1024;

  /** What a connection's end is passed on as. */
  private static final byte[] END = {};

  private record Piece(long dueNanos, byte[] bytes) {}

  private final ServerSocket server;
  private final int targetPort;
  private final long delayNanos;
  private final Set<Socket> sockets = ConcurrentHashMap.newKeySet();
  private volatile boolean cut;
  private volatile boolean closed;

  private SlowProxy(int targetPort, long delayMs) throws IOException {
    this.server = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
    this.targetPort = targetPort;
    this.delayNanos = TimeUnit.MILLISECONDS.toNanos(delayMs);
  }

  /** Listens on a free port; each direction takes so long. */
  public static SlowProxy start(int targetPort, long delayMs) throws IOException {
    SlowProxy proxy = new SlowProxy(targetPort, delayMs);
    proxy.daemon(proxy::accept);
    return proxy;
  }

  public int port() {
    return server.getLocalPort();
  }

  /** From now on nothing passes, in either direction, and nobody is told. */
  public void cut() {
    cut = true;
  }

  /** Lets pass what has waited, and all else. */
  public void heal() {
    cut = false;
  }

  private void accept() {
    while (!closed) {
      try {
        Socket client = server.accept();
        sockets.add(client);
        Socket target = new Socket(InetAddress.getLoopbackAddress(), targetPort);
        sockets.add(target);
        connect(client, target);
        connect(target, client);
      } catch (IOException e) {
        // Closed, or the target is: then the client finds out.
      }
    }
  }

  private void connect(Socket from, Socket to) throws IOException {
    to.setTcpNoDelay(true);
    BlockingQueue<Piece> under = new LinkedBlockingQueue<>();
    daemon(() -> read(from, under));
    daemon(() -> deliver(under, to));
  }

  private void read(Socket from, BlockingQueue<Piece> under) {
    byte[] buffer = new byte[PIECE_BYTES];
    try {
      InputStream in = from.getInputStream();
      for (int n = in.read(buffer); n >= 0; n = in.read(buffer)) {
        under.add(new Piece(System.nanoTime() + delayNanos, Arrays.copyOf(buffer, n)));
      }
    } catch (IOException e) {
      // The end, too.
    }
    under.add(new Piece(System.nanoTime() + delayNanos, END));
  }

  private void deliver(BlockingQueue<Piece> under, Socket to) {
    try (to) {
      OutputStream out = to.getOutputStream();
      for (Piece piece = under.take(); piece.bytes != END; piece = under.take()) {
        while (cut && !closed) {
          LockSupport.parkNanos(1_000_000);
        }
        for (long left = left(piece); left > 0; left = left(piece)) {
          LockSupport.parkNanos(left);
        }
        out.write(piece.bytes);
      }
    } catch (IOException | InterruptedException e) {
      // The end, too.
    }
  }

  private static long left(Piece piece) {
    return piece.dueNanos - System.nanoTime();
  }

  private void daemon(Runnable work) {
    Thread thread = new Thread(work, "slow-proxy-" + port());
    thread.setDaemon(true);
    thread.start();
  }

  @Override
  public void close() throws IOException {
    closed = true;
    server.close();
    for (Socket socket : sockets) {
      socket.close();
    }
  }
}
