package dev.freshet.connectors.store;

import static org.assertj.core.api.Assertions.assertThat;

import io.lettuce.core.RedisCommandExecutionException;
import io.lettuce.core.RedisCommandTimeoutException;
import io.lettuce.core.RedisConnectionException;
import io.lettuce.core.RedisException;
import io.netty.handler.ssl.NotSslRecordException;
import java.net.ConnectException;
import java.security.cert.CertificateException;
import java.util.Map;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletionException;
import javax.net.ssl.SSLHandshakeException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Which failures are waited out, and which fail the job. */
final class StoreFailuresTest {

  @ParameterizedTest
  @ValueSource(
      strings = {
        "LOADING Redis is loading the dataset in memory",
        "READONLY You can't write against a read only replica.",
        "OOM command not allowed when used memory > 'maxmemory'.",
        "MISCONF Redis is configured to save RDB snapshots",
        "BUSY Redis is busy running a script.",
        "TRYAGAIN Multiple keys request during rehashing of slot",
        "CLUSTERDOWN The cluster is down",
        "MASTERDOWN Link with MASTER is down",
        "NOREPLICAS Not enough good replicas to write.",
        "ERR max number of clients reached",
        "ERR Error running script (call to f_1): @user_script:52: -OOM command not allowed",
        "ERR Error running script (call to f_1): @user_script:52: -READONLY You can't write"
      })
  void waitsForServersThatWillRecover(String error) {
    Throwable failure = new CompletionException(new RedisCommandExecutionException(error));
    assertThat(StoreFailures.fatal("redis:6379", failure)).isEmpty();
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "WRONGPASS invalid username-password pair | password in redis.url",
        "NOAUTH Authentication required. | password to redis.url",
        "NOPERM this user has no permissions to run the 'evalsha' command | let the user run",
        "ERR The user executing the script can't run this command | let the user run",
        "ERR AUTH <password> called without any password configured | remove the password",
        "ERR unknown command 'EVALSHA' | allows EVAL",
        "ERR DB index is out of range | database number",
        "ERR This instance has cluster support disabled | set redis.cluster to false",
        "CROSSSLOT Keys in request don't hash to the same slot | set redis.cluster to true",
        "ERR something that nobody foresaw | see the cause"
      })
  void failsWithTheFix(String error, String fix) {
    Throwable failure =
        new RedisConnectionException(
            "Unable to connect", new RedisCommandExecutionException(error));
    Throwable shown = error.startsWith("ERR some") ? failure.getCause() : failure;
    assertThat(StoreFailures.fatal("redis:6379", shown))
        .get()
        .satisfies(
            fatal ->
                assertThat(fatal)
                    .hasMessageContaining("redis:6379")
                    .hasMessageContaining(error)
                    .hasMessageContaining(fix));
  }

  @Test
  void waitsForConnections() {
    assertThat(StoreFailures.fatal("r", new RedisConnectionException("Unable to connect")))
        .isEmpty();
    assertThat(StoreFailures.fatal("r", new RedisCommandTimeoutException("late"))).isEmpty();
    assertThat(StoreFailures.fatal("r", new ConnectException("refused"))).isEmpty();
    assertThat(StoreFailures.fatal("r", new CancellationException())).isEmpty();
    assertThat(StoreFailures.fatal("r", new RedisException("Connection is closed"))).isEmpty();
  }

  @Test
  void failsWhereCertificatesDoNotFit() {
    Throwable handshake = new SSLHandshakeException("PKIX path building failed");
    handshake.initCause(new CertificateException("no trusted certificate found"));
    for (Map.Entry<Throwable, String> each :
        Map.of(
                handshake,
                "in redis_ca",
                new SSLHandshakeException("Received fatal alert: certificate_required"),
                "set redis_certificate and redis_key",
                new NotSslRecordException("not an SSL/TLS record"),
                "begin redis.url with redis://")
            .entrySet()) {
      Throwable failure = new RedisConnectionException("Unable to connect", each.getKey());
      assertThat(StoreFailures.fatal("redis:6379", failure))
          .get()
          .satisfies(fatal -> assertThat(fatal).hasMessageContaining(each.getValue()));
    }
  }

  @Test
  void waitsForAServerThatEndsInTheMiddleOfAHandshake() {
    Throwable ended = new SSLHandshakeException("Remote host terminated the handshake");
    assertThat(StoreFailures.fatal("r", new RedisConnectionException("Unable to connect", ended)))
        .isEmpty();
  }

  @Test
  void aFaultOfOursFailsTheJob() {
    assertThat(StoreFailures.fatal("r", new IllegalStateException("a fault"))).isPresent();
  }
}
