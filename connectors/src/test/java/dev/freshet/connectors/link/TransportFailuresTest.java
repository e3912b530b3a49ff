package dev.freshet.connectors.link;

import static org.assertj.core.api.Assertions.assertThat;

import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.errors.ClusterAuthorizationException;
import org.apache.kafka.common.errors.NotLeaderOrFollowerException;
import org.apache.kafka.common.errors.SaslAuthenticationException;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.errors.TopicAuthorizationException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.junit.jupiter.api.Test;

/** What stays is told with its fix, also from deep inside; what passes, or is not known, passes. */
final class TransportFailuresTest {

  private static void assertPermanent(Throwable failure, String fix) {
    TransportException told = TransportFailures.of("region a:b", failure);
    assertThat(told.permanent()).isTrue();
    assertThat(told).hasCause(failure).hasMessageStartingWith("region a:b refuses chunks: ");
    assertThat(told).hasMessageContaining(fix);
  }

  private static void assertPassing(Throwable failure) {
    TransportException told = TransportFailures.of("region a:b", failure);
    assertThat(told.permanent()).isFalse();
    assertThat(told).hasMessageContaining(failure.getMessage());
  }

  @Test
  void tellsTheFixOfWhatStays() {
    assertPermanent(new SaslAuthenticationException("no such user"), "correct the login");
    assertPermanent(
        new KafkaException("in error state", new ClusterAuthorizationException("denied")),
        "IDEMPOTENT_WRITE");
    assertPermanent(new TopicAuthorizationException("inbox.a.b"), "let the user WRITE");
    assertPermanent(
        new TimeoutException("not present", new UnknownTopicOrPartitionException("unknown")),
        "start the region's job");
    assertPermanent(
        new KafkaException("failed to construct", new ConfigException("acks", "some")),
        "correct the region's kafka_properties");
  }

  @Test
  void letsPassWhatPassesOrIsNotKnown() {
    assertPassing(new TimeoutException("Expiring 1 record(s)"));
    assertPassing(new NotLeaderOrFollowerException("moved"));
    assertPassing(new KafkaException("something new"));
    assertPassing(
        new KafkaException(
            "failed to construct",
            new ConfigException("No resolvable bootstrap urls given in bootstrap.servers")));
  }
}
