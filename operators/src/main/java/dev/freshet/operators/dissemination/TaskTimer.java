package dev.freshet.operators.dissemination;

import java.util.concurrent.RejectedExecutionException;
import java.util.function.LongSupplier;
import org.apache.flink.api.common.operators.MailboxExecutor;
import org.apache.flink.streaming.runtime.tasks.ProcessingTimeService;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Has an operator send what is due, on its task's thread: at the time that the links ask for, and
 * after whatever comes from other threads.
 */
final class TaskTimer implements Link.TaskThread {

  private static final Logger LOG = LoggerFactory.getLogger(TaskTimer.class);

  private final ProcessingTimeService time;
  private final MailboxExecutor mailbox;
  private final LongSupplier pump;
  private long wakeAtMs = Long.MAX_VALUE;

  /**
   * @param pump sends what is due, and says when to call again at the latest, ms
   */
  TaskTimer(ProcessingTimeService time, MailboxExecutor mailbox, LongSupplier pump) {
    this.time = time;
    this.mailbox = mailbox;
    this.pump = pump;
  }

  /** Sends what is due, now and from now on. */
  void pump() {
    wakeAt(pump.getAsLong());
  }

  /** Sends at this time at the latest, ms. */
  void wakeAt(long timeMs) {
    if (timeMs >= wakeAtMs) {
      return;
    }
    wakeAtMs = timeMs;
    time.registerTimer(
        timeMs,
        firedMs -> {
          if (wakeAtMs <= firedMs) {
            wakeAtMs = Long.MAX_VALUE;
          }
          pump();
        });
  }

  /** Does something again and again, first when one interval is over. */
  void every(long intervalMs, Runnable work) {
    time.registerTimer(
        time.getCurrentProcessingTime() + intervalMs,
        firedMs -> {
          work.run();
          every(intervalMs, work);
        });
  }

  @Override
  public void run(String what, Runnable work) {
    try {
      mailbox.execute(
          () -> {
            work.run();
            pump();
          },
          what);
    } catch (RejectedExecutionException e) {
      LOG.debug("The task ended before it could {}", what, e);
    }
  }
}
