package dev.freshet.connectors.secret;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.lettuce.core.RedisCredentials;
import io.lettuce.core.RedisURI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.common.config.SaslConfigs;
import org.apache.kafka.common.config.SslConfigs;
import org.apache.kafka.common.security.JaasContext;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What a reference becomes where a client connects, and what is said where it leads nowhere. */
final class SecretsTest {

  private static final String AWKWARD = "a\"b\\c @:/?#%+,ü$1";

  @TempDir private Path folder;

  @Test
  void aUrlGetsThePasswordAsItIs() throws Exception {
    Path file = Files.writeString(folder.resolve("redis"), AWKWARD + "\n");
    RedisURI uri =
        RedisURI.create(Secrets.resolveUrl("rediss://me:${file:" + file + "}@cache:6379/0"));
    assertThat(uri.getHost()).isEqualTo("cache");
    RedisCredentials login = uri.getCredentialsProvider().resolveCredentials().block();
    assertThat(login.getUsername()).isEqualTo("me");
    assertThat(new String(login.getPassword())).isEqualTo(AWKWARD);
  }

  @Test
  void aKafkaClientResolvesItsProperties() throws Exception {
    Path file = Files.writeString(folder.resolve("kafka"), AWKWARD);
    // As test_config.py's test_a_login_by_reference_stays_one_for_java has them.
    Map<String, Object> properties = new HashMap<>();
    properties.put("bootstrap.servers", "broker:9092");
    properties.put("config.providers", "freshet");
    properties.put("config.providers.freshet.class", SecretProvider.class.getName());
    properties.put("ssl.key.password", "${freshet:env:PATH}");
    properties.put(
        "sasl.jaas.config",
        "org.apache.kafka.common.security.plain.PlainLoginModule required username=\"me\""
            + " password=\"${freshet:jaas-file:"
            + file
            + "}\";");

    AdminClientConfig config = new AdminClientConfig(properties);

    assertThat(config.getPassword(SslConfigs.SSL_KEY_PASSWORD_CONFIG).value())
        .isEqualTo(System.getenv("PATH"));
    Map<String, Object> login = new HashMap<>();
    login.put("sasl.jaas.config", config.getPassword(SaslConfigs.SASL_JAAS_CONFIG));
    Object password =
        JaasContext.loadClientContext(login)
            .configurationEntries()
            .get(0)
            .getOptions()
            .get("password");
    assertThat(password).isEqualTo(AWKWARD);
  }

  @Test
  void whatIsMissingIsNamed() throws Exception {
    Path empty = Files.writeString(folder.resolve("empty"), "\r\n");
    assertThatThrownBy(() -> Secrets.read("file", folder.resolve("nowhere").toString()))
        .isInstanceOf(SecretException.class)
        .hasMessageContaining("nowhere")
        .hasMessageContaining("TaskManager");
    assertThatThrownBy(() -> Secrets.read("file", empty.toString()))
        .hasMessageContaining("is empty");
    assertThatThrownBy(() -> Secrets.read("env", "FRESHET_IS_NOT_SET"))
        .hasMessageContaining("FRESHET_IS_NOT_SET is not set");
  }
}
