package dev.freshet.connectors.store;

import io.lettuce.core.RedisCommandExecutionException;
import io.lettuce.core.RedisCommandTimeoutException;
import io.lettuce.core.RedisConnectionException;
import io.lettuce.core.RedisException;
import io.netty.handler.ssl.NotSslRecordException;
import java.io.IOException;
import java.security.cert.CertificateException;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.concurrent.CancellationException;
import java.util.concurrent.TimeoutException;
import java.util.function.Predicate;
import java.util.regex.Pattern;
import javax.net.ssl.SSLException;
import org.apache.flink.util.ExceptionUtils;

/**
 * Tells failures that pass from those that do not. A failure is shown to a chain of classifiers,
 * fatal ones first, each looking at the whole chain of causes; what none knows is fatal, since a
 * restart of the job loses nothing and shows the cause.
 */
final class StoreFailures {

  /** A classifier: what it matches, and the fix if that is fatal; null if it passes. */
  private record Classifier(Predicate<Throwable> matches, String fix) {}

  /** Redis before 7 wraps what a command in a script answered. */
  private static final String SCRIPT_FAILED = "ERR Error running script";

  private static final Pattern ALERT =
      Pattern.compile("alert: (certificate_\\w+|\\w+_certificate|unknown_ca|handshake_failure)");

  private static final List<Classifier> CHAIN =
      List.of(
          new Classifier(
              CertificateException.class::isInstance,
              "name the authority of the server's certificate in redis_ca, and in redis.url the"
                  + " host that it is made out to"),
          new Classifier(
              StoreFailures::isAlert,
              "set redis_certificate and redis_key to a certificate whose authority the server"
                  + " trusts"),
          new Classifier(
              NotSslRecordException.class::isInstance,
              "begin redis.url with redis://: this port does not speak TLS"),
          fatal("WRONGPASS", "correct the user and password in redis.url"),
          fatal("NOAUTH", "add the user and password to redis.url"),
          fatal("ERR invalid password", "correct the password in redis.url"),
          fatal("ERR Client sent AUTH", "remove the password from redis.url"),
          fatal("ERR AUTH", "remove the password from redis.url, or set one in Redis"),
          fatal(
              "NOPERM",
              "let the user run INFO, EVAL, EVALSHA, GETRANGE, GET, EXISTS and SET (and CLUSTER"
                  + " SLOTS and ASKING in a cluster) on the table's keys"),
          fatal(
              "ERR The user executing the script",
              "let the user run GETRANGE, GET, EXISTS and SET on the table's keys"),
          fatal("ERR unknown command", "use a Redis or Valkey that allows EVAL and EVALSHA"),
          fatal("ERR DB index", "correct the database number in redis.url"),
          fatal("ERR This instance has cluster support disabled", "set redis.cluster to false"),
          fatal("CROSSSLOT", "set redis.cluster to true: this Redis is a cluster"),
          passing("LOADING"),
          passing("READONLY"),
          passing("OOM"),
          passing("MISCONF"),
          passing("BUSY"),
          passing("TRYAGAIN"),
          passing("CLUSTERDOWN"),
          passing("MASTERDOWN"),
          passing("NOREPLICAS"),
          passing("UNKILLABLE"),
          passing("MOVED"),
          passing("ASK"),
          passing("NOSCRIPT"),
          passing("ERR max number of clients reached"),
          passing(RedisConnectionException.class),
          passing(RedisCommandTimeoutException.class),
          passing(IOException.class),
          passing(TimeoutException.class),
          // Lettuce cancels what was in flight when a connection breaks.
          passing(CancellationException.class),
          new Classifier(StoreFailures::isConnectionState, null));

  private StoreFailures() {}

  /** The exception that fails the job, or nothing if another attempt may succeed. */
  static Optional<StoreException> fatal(String where, Throwable failure) {
    Optional<StoreException> known = ExceptionUtils.findThrowable(failure, StoreException.class);
    if (known.isPresent()) {
      return known;
    }
    for (Classifier classifier : CHAIN) {
      if (ExceptionUtils.findThrowable(failure, classifier.matches).isPresent()) {
        return classifier.fix == null
            ? Optional.empty()
            : Optional.of(exception(where, failure, classifier.fix));
      }
    }
    return Optional.of(exception(where, failure, "see the cause"));
  }

  /** Whether the server answered with this error. */
  static boolean isError(Throwable failure, String code) {
    return ExceptionUtils.findThrowable(failure, error(code)).isPresent();
  }

  private static StoreException exception(String where, Throwable failure, String fix) {
    Throwable cause = ExceptionUtils.stripCompletionException(failure);
    return new StoreException(
        "the online store at " + where + " refuses: " + deepest(cause).getMessage() + "; " + fix,
        cause);
  }

  private static Throwable deepest(Throwable failure) {
    Throwable deepest = failure;
    while (deepest.getCause() != null && deepest.getCause() != deepest) {
      deepest = deepest.getCause();
    }
    return deepest;
  }

  private static Classifier fatal(String code, String fix) {
    return new Classifier(error(code), fix);
  }

  private static Classifier passing(String code) {
    return new Classifier(error(code), null);
  }

  private static Classifier passing(Class<? extends Throwable> type) {
    return new Classifier(type::isInstance, null);
  }

  private static Predicate<Throwable> error(String code) {
    return failure ->
        failure instanceof RedisCommandExecutionException
            && failure.getMessage() != null
            && (failure.getMessage().startsWith(code)
                || (failure.getMessage().startsWith(SCRIPT_FAILED)
                    && failure.getMessage().contains("-" + code + " ")));
  }

  /** The server ended the handshake and said why, which is about the client's certificate. */
  private static boolean isAlert(Throwable failure) {
    return failure instanceof SSLException
        && failure.getMessage() != null
        && ALERT.matcher(failure.getMessage()).find();
  }

  /** Lettuce throws the bare class for a connection that is closed or not yet there. */
  private static boolean isConnectionState(Throwable failure) {
    return failure.getClass() == RedisException.class
        && failure.getMessage() != null
        && failure.getMessage().toLowerCase(Locale.ROOT).contains("connect");
  }
}
