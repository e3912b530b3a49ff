package dev.freshet.connectors.format;

import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.CommonClientConfigs;

/** Kafka client properties as a configuration has them. */
final class KafkaProperties {

  private KafkaProperties() {}

  /** All values as text; those without one are left out. */
  static Properties of(Map<String, Object> values) {
    Properties properties = new Properties();
    values.forEach(
        (name, value) -> {
          if (value != null) {
            properties.setProperty(name, String.valueOf(value));
          }
        });
    return properties;
  }

  /** The brokers' address must be there. */
  static void sanityCheck(Map<String, Object> values, String field, Problems problems) {
    problems.require(
        values != null && values.get(CommonClientConfigs.BOOTSTRAP_SERVERS_CONFIG) != null,
        field + "['bootstrap.servers'] is missing; give host:port of a broker");
  }
}
