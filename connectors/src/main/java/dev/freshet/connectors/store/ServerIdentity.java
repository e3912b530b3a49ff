package dev.freshet.connectors.store;

import io.lettuce.core.RedisCommandExecutionException;
import io.lettuce.core.api.async.RedisAsyncCommands;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.apache.flink.util.ExceptionUtils;

/**
 * Tells one life of a server's data from the next: the server's run id, which each start gives it
 * anew, and how often it was emptied since. As long as both stay, nothing was lost at once.
 *
 * <p>The server counts the commands that empty it, whoever gives them. So nothing of ours need
 * stand among the data, where it could be evicted or moved to another server of a cluster. The
 * count is of all databases: a flush of another one than the store's costs a needless restore. Keys
 * that are deleted or evicted one by one are not noticed, nor are flushes after a {@code CONFIG
 * RESETSTAT}, until there were more of them than before it.
 */
final class ServerIdentity {

  private static final String RUN_ID = "run_id:";
  private static final String CALLS = ":calls=";
  private static final List<String> EMPTYING =
      List.of("cmdstat_flushall", "cmdstat_flushdb", "cmdstat_swapdb");

  private ServerIdentity() {}

  /**
   * Asks a server.
   *
   * @param address stands for the run id where a proxy hides it, so that no restart is noticed
   */
  static CompletableFuture<String> ask(RedisAsyncCommands<byte[], byte[]> server, String address) {
    CompletableFuture<String> started =
        server.info("server").toCompletableFuture().thenApply(info -> runId(info, address));
    return server
        .info("commandstats")
        .toCompletableFuture()
        .exceptionallyCompose(ServerIdentity::withoutStatistics)
        .thenCombine(started, (info, runId) -> identity(runId, timesEmptied(info)));
  }

  /** A server or a proxy that keeps none is known by its run id. */
  private static CompletableFuture<String> withoutStatistics(Throwable failure) {
    return ExceptionUtils.findThrowable(failure, RedisCommandExecutionException.class).isPresent()
        ? CompletableFuture.completedFuture("")
        : CompletableFuture.failedFuture(failure);
  }

  private static String identity(String runId, long timesEmptied) {
    return timesEmptied == 0 ? runId : runId + "+" + timesEmptied;
  }

  private static String runId(String info, String address) {
    return info.lines()
        .filter(line -> line.startsWith(RUN_ID))
        .map(line -> line.substring(RUN_ID.length()).strip())
        .findFirst()
        .orElse(address);
  }

  /** From lines such as {@code cmdstat_flushall:calls=2,usec=88,…}. */
  private static long timesEmptied(String info) {
    return info.lines()
        .filter(line -> EMPTYING.stream().anyMatch(command -> line.startsWith(command + CALLS)))
        .mapToLong(
            line ->
                Long.parseLong(line.substring(line.indexOf(CALLS) + CALLS.length()).split(",")[0]))
        .sum();
  }
}
