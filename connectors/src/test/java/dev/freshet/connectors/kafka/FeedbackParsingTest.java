package dev.freshet.connectors.kafka;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import dev.freshet.connectors.format.TableConfig;
import dev.freshet.connectors.kafka.Ingested.Tag;
import dev.freshet.connectors.record.Feedback;
import dev.freshet.connectors.record.RecordTypeInfo;
import dev.freshet.connectors.record.Version;
import dev.freshet.connectors.testing.TestConfigs;
import dev.freshet.schemas.Stage;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Feedback: labelled, without a label yet, or a dead letter with its reason. */
final class FeedbackParsingTest {

  private static Ingested<Feedback> ingest(String json) {
    IngestSchema<Feedback> schema =
        new IngestSchema<>(
            TableConfig.parse(TestConfigs.table()), FeedbackParser::new, RecordTypeInfo.FEEDBACK);
    schema.open(() -> 1_700_000_000_000L);
    return schema.ingest(
        new ConsumerRecord<>("feedback.cpu_stl", 1, 2, null, json.getBytes(UTF_8)));
  }

  @Test
  void parsesALabelledQuery() {
    Ingested<Feedback> ingested =
        ingest(
            "{\"key\": \"k\", \"version\": \"1600000000000000.7\", \"error\": 0.25, \"ts\": 9,"
                + " \"region\": \"aws:eu\", \"model\": \"m\"}");
    assertThat(ingested.value())
        .isEqualTo(new Feedback("k", new Version(1_600_000_000_000_000L, 7), 0.25, 9));
    assertThat(ingested.timestampMs()).isEqualTo(9);
  }

  @ParameterizedTest
  @ValueSource(strings = {"", ", \"error\": null", ", \"error\": null, \"ts\": null"})
  void aQueryWithoutALabelHasNoError(String rest) {
    Ingested<Feedback> ingested = ingest("{\"key\": 5, \"version\": \"1.0\"" + rest + "}");
    assertThat(ingested.value().isLabelled()).isFalse();
    assertThat(ingested.value().key()).isEqualTo("5");
    assertThat(ingested.value().timestampMs()).isEqualTo(Feedback.NO_TIMESTAMP);
    assertThat(ingested.timestampMs()).isEqualTo(Ingested.NO_TIMESTAMP);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "{\"version\": \"1.0\", \"error\": 1}                      | field 'key' is missing",
        "{\"key\": \"k\", \"error\": 1}                            | field 'version' is missing",
        "{\"key\": \"k\", \"version\": 1.0, \"error\": 1}          | field 'version' is a number",
        "{\"key\": \"k\", \"version\": null}                       | field 'version' is null",
        "{\"key\": \"k\", \"version\": \"7\", \"error\": 1}        | '7' is not",
        "{\"key\": \"k\", \"version\": \"-1.0\", \"error\": 1}     | '-1.0' is not",
        "{\"key\": \"k\", \"version\": \"1.65536\", \"error\": 1}  | '1.65536' is not",
        "{\"key\": \"k\", \"version\": \"1.0\", \"error\": -0.5}   | at least 0",
        "{\"key\": \"k\", \"version\": \"1.0\", \"error\": NaN}    | field 'error' is NaN",
        "{\"key\": \"k\", \"version\": \"1.0\", \"error\": 1e999}  | finite",
        "{\"key\": \"k\", \"version\": \"1.0\", \"error\": \"1\"}  | field 'error' is a string",
        "{\"key\": \"k\", \"version\": \"1.0\", \"ts\": -5}        | at least 0",
        "{\"key\": \"k\", \"version\": \"1.0\", \"ts\": \"5\"}     | field 'ts' is a string",
        "{\"key\": \"\", \"version\": \"1.0\", \"error\": 1}       | field 'key' is empty",
        "nothing                                                   | not JSON",
      })
  void whatCannotBeUsedIsADeadLetter(String json, String reason) {
    Ingested<Feedback> ingested = ingest(json);
    assertThat(ingested.tag()).isEqualTo(Tag.DEAD_LETTER);
    assertThat(ingested.deadLetter().getStage()).isEqualTo(Stage.FEEDBACK);
    assertThat(ingested.deadLetter().getReason())
        .contains(reason, "feedback at topic feedback.cpu_stl, partition 1, offset 2");
  }
}
