package dev.freshet.connectors.store;

import static org.assertj.core.api.Assertions.assertThat;

import dev.freshet.connectors.format.DeploymentConfig;
import dev.freshet.connectors.testing.Await;
import dev.freshet.connectors.testing.TestConfigs;
import dev.freshet.connectors.testing.TestRedis;
import java.util.List;
import java.util.Set;
import java.util.concurrent.LinkedBlockingQueue;
import org.apache.flink.api.common.operators.MailboxExecutor;
import org.apache.flink.util.function.ThrowingRunnable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What the task's thread may believe of servers that it has not heard of yet. */
@Timeout(60)
final class StoreConnectionTest {

  @Test
  void aServerIsNotKnownBeforeTheTaskHasHeardWhichOneItIs() throws Exception {
    Mailbox mailbox = new Mailbox();
    StoreIdentity identity = StoreIdentity.join(List.of("complete another"));
    try (TestRedis redis = TestRedis.start();
        TaskMail mail = new TaskMail(mailbox, "waits");
        StoreConnection connection =
            new StoreConnection(
                DeploymentConfig.parse(TestConfigs.deployment("127.0.0.1:1", redis.url(), false))
                    .redis(),
                identity,
                mail,
                new Nobody())) {
      connection.start();
      Await.until("it is connected", () -> connection.store().isConnected());
      assertThat(identity.isRestorePending()).as("the task has not heard of it").isFalse();
      assertThat(connection.isKnown()).isFalse();

      Await.until(
          "the task hears of it",
          () -> {
            mailbox.runAll();
            return connection.isKnown();
          });
      assertThat(identity.isRestorePending()).isTrue();
    }
  }

  private static final class Nobody implements StoreConnection.Listener {
    @Override
    public void connected(Set<String> servers, boolean isLost) {}

    @Override
    public void whole() {}
  }

  /** Mail that waits until the test runs it. */
  private static final class Mailbox implements MailboxExecutor {
    private final LinkedBlockingQueue<ThrowingRunnable<? extends Exception>> mails =
        new LinkedBlockingQueue<>();

    @Override
    public void execute(
        MailOptions options,
        ThrowingRunnable<? extends Exception> command,
        String description,
        Object... arguments) {
      mails.add(command);
    }

    void runAll() throws Exception {
      for (var mail = mails.poll(); mail != null; mail = mails.poll()) {
        mail.run();
      }
    }

    @Override
    public void yield() {
      throw new UnsupportedOperationException();
    }

    @Override
    public boolean tryYield() {
      throw new UnsupportedOperationException();
    }

    @Override
    public boolean shouldInterrupt() {
      return false;
    }
  }
}
