package dev.freshet.connectors.kafka;

import java.util.List;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.CommonClientConfigs;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;

/**
 * The ids that Kafka gives topics (KIP-516). A topic that is deleted and made again has another id,
 * so an offset means something only together with it.
 */
public final class TopicIds {

  private TopicIds() {}

  /**
   * The id of a topic, in Kafka's own text form. Asks the broker, which may take up to the client's
   * {@code default.api.timeout.ms}.
   *
   * @param kafka client properties
   * @throws IllegalStateException if there is no such topic, or its broker does not tell
   */
  public static String of(Properties kafka, String topic) throws InterruptedException {
    Object where = kafka.get(CommonClientConfigs.BOOTSTRAP_SERVERS_CONFIG);
    try (Admin admin = Admin.create(kafka)) {
      return admin
          .describeTopics(List.of(topic))
          .allTopicNames()
          .get()
          .get(topic)
          .topicId()
          .toString();
    } catch (ExecutionException e) {
      Throwable cause = e.getCause();
      throw new IllegalStateException(
          cause instanceof UnknownTopicOrPartitionException
              ? "topic '"
                  + topic
                  + "' does not exist at "
                  + where
                  + "; submit the table first, which creates it, or correct topic_prefix"
              : "the id of topic '"
                  + topic
                  + "' cannot be had from "
                  + where
                  + ": "
                  + cause.getMessage()
                  + "; check that the broker answers and lets the user describe the topic",
          cause);
    }
  }
}
