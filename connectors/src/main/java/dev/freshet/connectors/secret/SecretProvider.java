package dev.freshet.connectors.secret;

import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.common.config.ConfigData;
import org.apache.kafka.common.config.provider.ConfigProvider;

/**
 * Resolves references in the properties of a Kafka client, where and when the client is made. In
 * Kafka's notation, <code>${provider:path:key}</code>, the path is the reference's kind and the key
 * what it names: <code>${freshet:file:/run/secrets/x}</code>. The kinds that begin with {@code
 * jaas-} are for a quoted value in {@code sasl.jaas.config}.
 */
public final class SecretProvider implements ConfigProvider {

  private static final String JAAS = "jaas-";

  @Override
  public void configure(Map<String, ?> configs) {}

  /** All keys of a path, which nobody asks for: a reference names its key. */
  @Override
  public ConfigData get(String path) {
    return new ConfigData(Map.of());
  }

  @Override
  public ConfigData get(String path, Set<String> keys) {
    boolean quoted = path.startsWith(JAAS);
    String kind = quoted ? path.substring(JAAS.length()) : path;
    Map<String, String> secrets = new HashMap<>();
    for (String key : keys) {
      String secret = Secrets.read(kind, key);
      secrets.put(key, quoted ? escape(secret) : secret);
    }
    return new ConfigData(secrets);
  }

  /** Escapes what means something between quotes, as {@code freshet/kafka_clients.py} does. */
  private static String escape(String text) {
    return text.replace("\\", "\\\\")
        .replace("\"", "\\\"")
        .replace("\n", "\\n")
        .replace("\r", "\\r");
  }

  @Override
  public void close() {}
}
