package dev.freshet.connectors.link;

import java.util.concurrent.atomic.AtomicBoolean;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** A chunk that is to be sent; its callback hears once what became of it. */
final class Outgoing {

  private static final Logger LOG = LoggerFactory.getLogger(Outgoing.class);

  final byte[] key;
  final int lane;
  final byte[] chunk;

  /** Until when it may wait for its region to be reached, by {@link System#nanoTime}. */
  private final long deadlineNanos;

  private final Transport.Callback callback;
  private final AtomicBoolean done = new AtomicBoolean();

  Outgoing(byte[] key, int lane, byte[] chunk, long deadlineNanos, Transport.Callback callback) {
    this.key = key;
    this.lane = lane;
    this.chunk = chunk;
    this.deadlineNanos = deadlineNanos;
    this.callback = callback;
  }

  boolean isExpired() {
    return System.nanoTime() - deadlineNanos >= 0;
  }

  /**
   * Tells the callback, unless it was told.
   *
   * @param failure null if it is acknowledged
   */
  void finish(TransportException failure) {
    if (!done.compareAndSet(false, true)) {
      return;
    }
    try {
      callback.done(failure);
    } catch (RuntimeException e) {
      // The thread serves other chunks, too.
      LOG.error("A transport's callback failed", e);
    }
  }
}
