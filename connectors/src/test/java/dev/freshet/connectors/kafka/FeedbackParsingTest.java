package dev.freshet.connectors.kafka;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import dev.freshet.connectors.format.TableConfig;
import dev.freshet.connectors.kafka.Ingested.Tag;
import dev.freshet.connectors.record.Feedback;
import dev.freshet.connectors.record.FeedbackSerializer;
import dev.freshet.connectors.record.RecordTypeInfo;
import dev.freshet.connectors.record.Version;
import dev.freshet.connectors.testing.TestConfigs;
import dev.freshet.schemas.Stage;
import java.util.List;
import org.apache.flink.core.memory.DataInputDeserializer;
import org.apache.flink.core.memory.DataOutputSerializer;
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
  @ValueSource(
      strings = {
        "[]",
        "null",
        "[0.5]",
        "[0.5, 2]",
        "[null, 2, 3]",
        "[0, null, 3, 4]",
        "[1, 2, 3, 4, 5, 6, 7, 8]",
      })
  void errorsOfAllKeptVersionsMayBeThere(String errors) {
    Version version = new Version(1, 0);
    assertThat(
            ingest(
                    "{\"key\": \"k\", \"version\": \"1.0\", \"error\": 0.5, \"ts\": 9, \"errors\": "
                        + errors
                        + "}")
                .value())
        .isEqualTo(new Feedback("k", version, 0.5, 9));
  }

  @Test
  void aNullVersionSaysThatTheQueryFoundNoValue() {
    assertThat(ingest("{\"key\": \"k\", \"version\": null, \"error\": 2}").value())
        .isEqualTo(new Feedback("k", Version.NONE, 2, Feedback.NO_TIMESTAMP));
  }

  @Test
  void aDemandHasNoVersion() {
    Ingested<Feedback> demand = ingest("{\"key\": \"k\", \"demand\": true, \"ts\": 9}");
    assertThat(demand.value()).isEqualTo(Feedback.ofDemand("k", 9));
    assertThat(demand.timestampMs()).isEqualTo(9);
    assertThat(ingest("{\"key\": \"k\", \"demand\": true}").value().timestampMs())
        .isEqualTo(Feedback.NO_TIMESTAMP);
    assertThat(ingest("{\"key\": \"k\", \"demand\": null, \"version\": \"1.0\"}").value())
        .isEqualTo(new Feedback("k", new Version(1, 0), Double.NaN, Feedback.NO_TIMESTAMP));
  }

  @Test
  void aNextRecordForgetsTheOneBefore() throws Exception {
    FeedbackParser parser =
        new FeedbackParser(TableConfig.parse(TestConfigs.table()), () -> 1_700_000_000_000L);
    parser.parse("{\"key\": \"k\", \"version\": \"1.0\", \"errors\": [1, 2]}".getBytes(UTF_8));
    parser.parse("{\"key\": \"k\", \"demand\": true}".getBytes(UTF_8));
    assertThat(parser.parse("{\"key\": \"k\", \"version\": \"1.0\"}".getBytes(UTF_8)))
        .isEqualTo(new Feedback("k", new Version(1, 0), Double.NaN, Feedback.NO_TIMESTAMP));
  }

  @Test
  void everyFieldSurvivesTheSerializer() throws Exception {
    for (Feedback feedback :
        List.of(
            new Feedback("k\u00e9y", new Version(Long.MAX_VALUE, 65_535), 1.5, 9),
            new Feedback("k", Version.NONE, Double.NaN, Feedback.NO_TIMESTAMP),
            Feedback.ofDemand("k", 7))) {
      DataOutputSerializer out = new DataOutputSerializer(64);
      new FeedbackSerializer().serialize(feedback, out);
      DataInputDeserializer in = new DataInputDeserializer(out.getCopyOfBuffer());
      assertThat(new FeedbackSerializer().deserialize(in)).isEqualTo(feedback);
      assertThat(in.available()).isZero();
    }
  }

  @Test
  void aReasonDoesNotTellWhereJacksonReadFrom() {
    String reason = ingest("{\"other\": {\"a\": 1").deadLetter().getReason();
    assertThat(reason)
        .contains("not JSON", "start marker at [line: 1, column: 11]")
        .doesNotContain("REDACTED");
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "{\"version\": \"1.0\", \"error\": 1}                      | field 'key' is missing",
        "{\"key\": \"k\", \"error\": 1}                            | field 'version' is missing",
        "{\"key\": \"k\", \"version\": 1.0, \"error\": 1}          | field 'version' is a number",
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
        "{\"key\": \"k\", \"version\": \"1.0\", \"errors\": 1}     | must be an array of numbers",
        "{\"key\": \"k\", \"version\": \"1.0\", \"errors\": [1, -1]} | field 'errors[1]' is -1.0",
        "{\"key\": \"k\", \"version\": \"1.0\", \"errors\": [\"1\"]} | field 'errors[0]' is a string",
        "{\"key\": \"k\", \"version\": \"1.0\", \"errors\": [[1]]}   | field 'errors[0]' is an array",
        "{\"key\": \"k\", \"version\": \"1.0\", \"errors\": [1,1,1,1,1,1,1,1,1]} | more than 8",
        "{\"key\": \"k\", \"demand\": 1}                          | must be true or false",
        "{\"key\": \"k\", \"demand\": false}                      | field 'version' is missing",
        "{\"demand\": true}                                        | field 'key' is missing",
        "{\"key\": \"k\", \"demand\": true, \"version\": \"1.0\"}   | a record of its own",
        "{\"key\": \"k\", \"demand\": true, \"error\": 1}         | a record of its own",
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
