package dev.freshet.connectors.store;

import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import org.apache.flink.api.common.operators.MailboxExecutor;
import org.apache.flink.util.concurrent.ExecutorThreadFactory;
import org.apache.flink.util.function.ThrowingRunnable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Brings actions from other threads to the task's, at once or after a while. */
final class TaskMail implements AutoCloseable {

  private static final Logger LOG = LoggerFactory.getLogger(TaskMail.class);

  private final MailboxExecutor mailbox;
  private final ScheduledExecutorService waiting;

  /**
   * @param threadName name of the thread that waits
   */
  TaskMail(MailboxExecutor mailbox, String threadName) {
    this.mailbox = mailbox;
    this.waiting =
        Executors.newSingleThreadScheduledExecutor(new ExecutorThreadFactory(threadName));
  }

  /** Runs an action on the task's thread; what it throws fails the job. */
  void send(String what, ThrowingRunnable<Exception> action) {
    try {
      mailbox.execute(action, what);
    } catch (RejectedExecutionException e) {
      LOG.debug("The task ended before it could {}", what, e);
    }
  }

  /** The same, but not before so many milliseconds have passed. */
  void sendLater(long delayMs, String what, ThrowingRunnable<Exception> action) {
    try {
      waiting.schedule(() -> send(what, action), delayMs, TimeUnit.MILLISECONDS);
    } catch (RejectedExecutionException e) {
      LOG.debug("The task ended before it could {}", what, e);
    }
  }

  /** Waits for the next mail and runs it; called on the task's thread. */
  void runNext() throws InterruptedException {
    mailbox.yield();
  }

  @Override
  public void close() {
    waiting.shutdownNow();
  }
}
