package dev.freshet.connectors.store;

import io.lettuce.core.RedisCommandExecutionException;
import org.apache.flink.util.ExceptionUtils;

/** Reads a Redis Cluster's redirections. */
final class StoreRedirects {

  private static final String ASK = "ASK ";

  private StoreRedirects() {}

  /** {@code host:port} that imports the keys' slot; null if the failure is not {@code ASK}. */
  static String askTarget(Throwable failure) {
    return ExceptionUtils.findThrowable(failure, RedisCommandExecutionException.class)
        .map(Throwable::getMessage)
        .filter(message -> message != null && message.startsWith(ASK))
        // ASK <slot> <host:port>
        .map(message -> message.substring(message.lastIndexOf(' ') + 1).strip())
        .orElse(null);
  }
}
