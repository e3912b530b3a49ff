package dev.freshet.connectors.link;

import java.util.List;
import java.util.Optional;
import java.util.function.Predicate;
import org.apache.flink.util.ExceptionUtils;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.errors.AuthenticationException;
import org.apache.kafka.common.errors.AuthorizationException;
import org.apache.kafka.common.errors.ClusterAuthorizationException;
import org.apache.kafka.common.errors.InvalidTopicException;
import org.apache.kafka.common.errors.RecordTooLargeException;
import org.apache.kafka.common.errors.SslAuthenticationException;
import org.apache.kafka.common.errors.TopicAuthorizationException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.apache.kafka.common.errors.UnsupportedVersionException;

/**
 * Tells failures that pass from those that stay until somebody acts. A failure is shown to a chain
 * of classifiers, each looking at the whole chain of causes; what none knows passes, since a region
 * that is given up would never come back.
 */
final class TransportFailures {

  /** A classifier: what it matches, and the fix if that stays; null if it passes. */
  private record Classifier(Predicate<Throwable> matches, String fix) {}

  /** What the client throws, as a fault of its settings, when no address has an entry in DNS. */
  private static final String UNRESOLVED = "No resolvable bootstrap urls";

  private static final List<Classifier> CHAIN =
      List.of(
          new Classifier(TransportFailures::isUnresolved, null),
          permanent(
              SslAuthenticationException.class,
              "correct the certificates in the region's kafka_properties"),
          permanent(
              AuthenticationException.class, "correct the login in the region's kafka_properties"),
          permanent(TopicAuthorizationException.class, "let the user WRITE to the topic"),
          permanent(
              ClusterAuthorizationException.class,
              "let the user write idempotently (IDEMPOTENT_WRITE on the cluster)"),
          permanent(AuthorizationException.class, "let the user WRITE to the topic"),
          permanent(
              UnknownTopicOrPartitionException.class,
              "start the region's job, which creates the topic, or correct topic_prefix"),
          permanent(InvalidTopicException.class, "correct topic_prefix"),
          permanent(
              RecordTooLargeException.class,
              "raise max.message.bytes of the topic, and max.request.size in the region's"
                  + " kafka_properties if it is set there"),
          permanent(UnsupportedVersionException.class, "use Kafka 2.1 or newer in the region"),
          permanent(ConfigException.class, "correct the region's kafka_properties"));

  private TransportFailures() {}

  /**
   * What to tell of a failure.
   *
   * @param where names the region, its broker and the topic
   */
  static TransportException of(String where, Throwable failure) {
    if (failure instanceof TransportException known) {
      return known;
    }
    Optional<String> fix = fix(failure);
    String why = ExceptionUtils.stripExecutionException(failure).getMessage();
    String does = fix.isPresent() ? " refuses chunks: " : " cannot be reached or does not answer: ";
    String then = fix.orElse("check the broker and the way to it if this lasts");
    return new TransportException(where + does + why + "; " + then, fix.isPresent(), failure);
  }

  /** The fix of a failure that stays; nothing if it passes. */
  private static Optional<String> fix(Throwable failure) {
    return CHAIN.stream()
        .filter(classifier -> ExceptionUtils.findThrowable(failure, classifier.matches).isPresent())
        .findFirst()
        .map(Classifier::fix);
  }

  private static Classifier permanent(Class<? extends Throwable> type, String fix) {
    return new Classifier(type::isInstance, fix);
  }

  private static boolean isUnresolved(Throwable failure) {
    return failure instanceof ConfigException
        && failure.getMessage() != null
        && failure.getMessage().startsWith(UNRESOLVED);
  }
}
