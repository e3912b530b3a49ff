package dev.freshet.connectors.kafka;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import dev.freshet.connectors.format.TableConfig;
import dev.freshet.connectors.kafka.Ingested.Tag;
import dev.freshet.connectors.record.DeadLetters;
import dev.freshet.connectors.record.EntityKeys;
import dev.freshet.connectors.record.Event;
import dev.freshet.connectors.record.RecordTypeInfo;
import dev.freshet.connectors.record.ValueKind;
import dev.freshet.connectors.testing.TestConfigs;
import dev.freshet.schemas.DeadLetter;
import dev.freshet.schemas.Stage;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Optional;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.record.TimestampType;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * Every Kafka record becomes one value, one dead letter or one heartbeat; a dead letter says what
 * is wrong and where, and carries the original.
 */
final class EventParsingTest {

  private static final long NOW_MS = 1_700_000_000_000L;
  // Computed by an independent implementation of the hash.
  private static final long EVERY_RUN_EMPTY = -780787492076525413L;
  private static final long EVERY_RUN_ORDER_1 = 9175416225840591891L;

  private static final String GOOD = "{\"key\": \"vm-1\", \"ts\": 1600000000000, \"value\": 4.5}";

  private static IngestSchema<Event> schema(String... replacements) {
    IngestSchema<Event> schema =
        new IngestSchema<>(
            TableConfig.parse(TestConfigs.table(replacements)),
            EventParser::new,
            RecordTypeInfo.EVENT);
    schema.open(() -> NOW_MS);
    return schema;
  }

  private static IngestSchema<Event> schemaOfKind(String kind) {
    return schema("\"kind\": \"scalar\"", "\"kind\": \"" + kind + "\"");
  }

  private static ConsumerRecord<byte[], byte[]> record(byte[] value) {
    return new ConsumerRecord<>("events.cpu_stl", 3, 42, "vm-1".getBytes(UTF_8), value);
  }

  private static Ingested<Event> ingest(IngestSchema<Event> schema, String json) {
    return schema.ingest(record(json.getBytes(UTF_8)));
  }

  private static Event event(IngestSchema<Event> schema, String json) {
    Ingested<Event> ingested = ingest(schema, json);
    assertThat(ingested.deadLetter()).isNull();
    assertThat(ingested.tag()).isEqualTo(Tag.VALUE);
    assertThat(ingested.timestampMs()).isEqualTo(ingested.value().timestampMs());
    return ingested.value();
  }

  private static double[] doubles(Event event) {
    ByteBuffer buffer = ByteBuffer.wrap(event.value()).order(ByteOrder.LITTLE_ENDIAN);
    double[] doubles = new double[event.value().length / Double.BYTES];
    buffer.asDoubleBuffer().get(doubles);
    return doubles;
  }

  @Test
  void parsesAScalar() {
    Event event = event(schema(), GOOD);
    assertThat(event.key()).isEqualTo("vm-1");
    assertThat(event.timestampMs()).isEqualTo(1_600_000_000_000L);
    assertThat(event.id()).isZero();
    assertThat(event.kind()).isEqualTo(ValueKind.SCALAR);
    assertThat(doubles(event)).containsExactly(4.5);
  }

  @Test
  void takesIntegersAsKeysAndWholeFloatsAsTimestamps() {
    Event event =
        event(schema(), "{\"value\": 7, \"ts\": 1.6e12, \"other\": {\"key\": [1]}, \"key\": 17}");
    assertThat(event.key()).isEqualTo("17");
    assertThat(event.timestampMs()).isEqualTo(1_600_000_000_000L);
    assertThat(doubles(event)).containsExactly(7);
  }

  @Test
  void parsesAVectorOfAnyLength() {
    StringBuilder json = new StringBuilder("{\"key\": \"k\", \"ts\": 1, \"value\": [-1.5");
    for (int i = 1; i < 100; i++) {
      json.append(", ").append(i);
    }
    double[] vector = doubles(event(schemaOfKind("vector"), json.append("]}").toString()));
    assertThat(vector).hasSize(100);
    assertThat(vector[0]).isEqualTo(-1.5);
    assertThat(vector[99]).isEqualTo(99);
  }

  @Test
  void keepsATreeByteForByte() {
    String tree = "{\"a\": [1, {\"b\": \"ü \\\" }\"}],  \"c\": null}";
    Event event =
        event(schemaOfKind("json"), "{\"ts\": 1, \"value\":  " + tree + " , \"key\": \"k\"}");
    assertThat(new String(event.value(), UTF_8)).isEqualTo(tree);
    assertThat(
            new String(
                event(schemaOfKind("json"), "{\"value\":[1],\"ts\":1,\"key\":\"k\"}").value(),
                UTF_8))
        .isEqualTo("[1]");
  }

  @Test
  void mapsFieldsByTheTable() {
    IngestSchema<Event> mapped =
        schema(
            "\"key\": \"key\"", "\"key\": \"host\"",
            "\"timestamp\": \"ts\"", "\"timestamp\": \"at\"",
            "\"value\": \"value\"", "\"value\": \"cpu\"",
            "\"id\": null", "\"id\": \"at\"");
    Event event = event(mapped, "{\"host\": \"h\", \"at\": 12, \"cpu\": 1, \"key\": null}");
    assertThat(event.key()).isEqualTo("h");
    assertThat(event.timestampMs()).isEqualTo(12);
    assertThat(event.id()).isEqualTo(EventIds.hash("12"));
  }

  @Test
  void idsAreTheSameInEveryRun() {
    // Ids are kept in state: a release that hashed otherwise would see old events as new ones.
    assertThat(EventIds.hash("")).isEqualTo(EVERY_RUN_EMPTY);
    assertThat(EventIds.hash("order-1")).isEqualTo(EVERY_RUN_ORDER_1);
    IngestSchema<Event> withId = schema("\"id\": null", "\"id\": \"n\"");
    String one = "{\"key\": \"k\", \"ts\": 1, \"value\": 1, \"n\": 1}";
    assertThat(event(withId, one).id())
        .isEqualTo(event(withId, one.replace("\"n\": 1", "\"n\": \"1\"")).id())
        .isNotEqualTo(event(withId, one.replace("\"n\": 1", "\"n\": 2")).id());
  }

  @ParameterizedTest(name = "{0} {1}")
  @CsvSource(
      delimiter = '|',
      value = {
        "scalar | not json                                           | not JSON",
        "scalar | ''                                                 | is empty",
        "scalar | 17                                                 | is a number",
        "scalar | [1]                                                | is an array",
        "scalar | {\"key\": \"k\", \"ts\": 1, \"value\": 1           | not JSON",
        "scalar | {\"key\": \"k\", \"ts\": 1, \"value\": 1} {}       | follows the JSON object",
        "scalar | {\"key\": \"k\", \"ts\": 1, \"value\": 1}x         | not JSON",
        "scalar | {\"ts\": 1, \"value\": 1}                          | field 'key' is missing",
        "scalar | {\"key\": \"k\", \"value\": 1}                     | field 'ts' is missing",
        "scalar | {\"key\": \"k\", \"ts\": 1}                        | field 'value' is missing",
        "scalar | {\"key\": null, \"ts\": 1, \"value\": 1}           | field 'key' is null",
        "scalar | {\"key\": \"\", \"ts\": 1, \"value\": 1}           | field 'key' is empty",
        "scalar | {\"key\": 1.5, \"ts\": 1, \"value\": 1}            | a string or an integer",
        "scalar | {\"key\": true, \"ts\": 1, \"value\": 1}           | field 'key' is a boolean",
        "scalar | {\"key\": {}, \"ts\": 1, \"value\": 1}             | field 'key' is an object",
        "scalar | {\"key\": \"\\ud800\", \"ts\": 1, \"value\": 1}    | surrogate",
        "scalar | {\"key\": \"k\", \"ts\": \"1\", \"value\": 1}      | field 'ts' is a string",
        "scalar | {\"key\": \"k\", \"ts\": null, \"value\": 1}       | field 'ts' is null",
        "scalar | {\"key\": \"k\", \"ts\": 1.5, \"value\": 1}        | field 'ts' is 1.5",
        "scalar | {\"key\": \"k\", \"ts\": -1, \"value\": 1}         | at least 0",
        "scalar | {\"key\": \"k\", \"ts\": NaN, \"value\": 1}        | field 'ts' is NaN",
        "scalar | {\"key\": \"k\", \"ts\": 99999999999999999999, \"value\": 1} | field 'ts'",
        "scalar | {\"key\": \"k\", \"ts\": 1700086400001, \"value\": 1} | ahead of the wall clock",
        "scalar | {\"key\": \"k\", \"ts\": 1, \"value\": \"1\"}      | field 'value' is a string",
        "scalar | {\"key\": \"k\", \"ts\": 1, \"value\": null}       | field 'value' is null",
        "scalar | {\"key\": \"k\", \"ts\": 1, \"value\": true}       | field 'value' is a boolean",
        "scalar | {\"key\": \"k\", \"ts\": 1, \"value\": [1]}        | field 'value' is an array",
        "scalar | {\"key\": \"k\", \"ts\": 1, \"value\": NaN}        | field 'value' is NaN",
        "scalar | {\"key\": \"k\", \"ts\": 1, \"value\": -Infinity}  | field 'value' is -Infinity",
        "scalar | {\"key\": \"k\", \"ts\": 1, \"value\": 1e999}      | finite",
        "scalar | {\"key\": \"k\", \"ts\": 1, \"value\": 1, \"value\": 2} | comes twice",
        "vector | {\"key\": \"k\", \"ts\": 1, \"value\": 1}          | an array of numbers",
        "vector | {\"key\": \"k\", \"ts\": 1, \"value\": []}         | empty array",
        "vector | {\"key\": \"k\", \"ts\": 1, \"value\": [1, \"2\"]} | element 1 of field 'value' is a string",
        "vector | {\"key\": \"k\", \"ts\": 1, \"value\": [1, [2]]}   | element 1",
        "vector | {\"key\": \"k\", \"ts\": 1, \"value\": [1, null]}  | is null",
        "vector | {\"key\": \"k\", \"ts\": 1, \"value\": [NaN]}      | element 0 of field 'value' is NaN",
        "json   | {\"key\": \"k\", \"ts\": 1, \"value\": 1}          | an object or an array",
        "json   | {\"key\": \"k\", \"ts\": 1, \"value\": \"{}\"}     | field 'value' is a string",
        "json   | {\"key\": \"k\", \"ts\": 1, \"value\": {\"a\": [NaN]}} | has NaN in it",
        "json   | {\"key\": \"k\", \"ts\": 1, \"value\": {\"a\": 1}  | not JSON",
      })
  void whatCannotBeUsedIsADeadLetter(String kind, String json, String reason) {
    Ingested<Event> ingested = ingest(schemaOfKind(kind), json);

    assertThat(ingested.tag()).isEqualTo(Tag.DEAD_LETTER);
    assertThat(ingested.timestampMs()).isEqualTo(Ingested.NO_TIMESTAMP);
    DeadLetter letter = ingested.deadLetter();
    assertThat(letter.getReason()).contains(reason, "topic events.cpu_stl, partition 3, offset 42");
    assertThat(letter.getStage()).isEqualTo(Stage.EVENT);
    assertThat(letter.getTable()).isEqualTo("cpu_stl");
    assertThat(letter.getPartition()).isEqualTo(3);
    assertThat(letter.getOffset()).isEqualTo(42);
    assertThat(letter.getKey()).isEqualTo(ByteBuffer.wrap("vm-1".getBytes(UTF_8)));
    assertThat(letter.getValue()).isEqualTo(ByteBuffer.wrap(json.getBytes(UTF_8)));
  }

  @Test
  void aDeadLetterCarriesTheEventTimeThatWasRead() {
    Ingested<Event> late = ingest(schema(), "{\"ts\": 77, \"key\": \"k\", \"value\": null}");
    assertThat(late.deadLetter().getEventTime()).isEqualTo(77);
  }

  @Test
  void bytesThatAreNotUtf8AreDeadLetters() {
    byte[] latin1 = {'{', '"', 'k', 'e', 'y', '"', ':', '"', (byte) 0xE9, '"', '}'};
    assertThat(schema().ingest(record(latin1)).deadLetter().getReason()).contains("UTF-8");
    byte[] utf16 = GOOD.getBytes(java.nio.charset.StandardCharsets.UTF_16LE);
    assertThat(schema().ingest(record(utf16)).deadLetter().getReason()).contains("UTF-8");
    assertThat(schema().ingest(record(new byte[64])).tag()).isEqualTo(Tag.DEAD_LETTER);
  }

  @Test
  void keysHaveALimitInBytes() {
    String fits = "ü".repeat(EntityKeys.MAX_BYTES / 2);
    assertThat(event(schema(), GOOD.replace("vm-1", fits)).key()).isEqualTo(fits);
    assertThat(ingest(schema(), GOOD.replace("vm-1", fits + "x")).deadLetter().getReason())
        .contains("longer than 1024 bytes");
    assertThat(event(schema(), GOOD.replace("vm-1", "😀")).key()).isEqualTo("😀");
  }

  @Test
  void oversizedRecordsAreNotParsed() {
    IngestSchema<Event> small =
        schema("\"max_event_bytes\": 1048576", "\"max_event_bytes\": " + GOOD.length());
    assertThat(ingest(small, GOOD).tag()).isEqualTo(Tag.VALUE);
    assertThat(ingest(small, GOOD + " ").deadLetter().getReason())
        .contains(GOOD.length() + 1 + " bytes", "source.max_event_bytes");
  }

  @Test
  void aHugeOriginalIsCutSoThatItsLetterCanBeWritten() {
    DeadLetter letter = ingest(schema(), "[" + " ".repeat(2_000_000) + "]").deadLetter();
    assertThat(letter.getValue().remaining()).isEqualTo(DeadLetters.MAX_VALUE_BYTES);
    assertThat(letter.getReason()).contains("only the first", "2000002 bytes");
  }

  @Test
  void deepNestingIsADeadLetterAndNoOverflow() {
    String deep = "[".repeat(100_000);
    assertThat(ingest(schemaOfKind("json"), "{\"value\": " + deep).tag())
        .isEqualTo(Tag.DEAD_LETTER);
  }

  @Test
  void heartbeatsMoveTimeAndAreNothingElse() {
    Ingested<Event> heartbeat = schema().ingest(withoutValue(IngestSchema.HEARTBEAT_HEADER, 99));
    assertThat(heartbeat.tag()).isEqualTo(Tag.HEARTBEAT);
    assertThat(heartbeat.timestampMs()).isEqualTo(99);
  }

  @Test
  void aRecordWithoutAValueThatIsNoHeartbeatIsADeadLetter() {
    assertThat(schema().ingest(withoutValue("other", 99)).deadLetter().getReason())
        .contains("no value", IngestSchema.HEARTBEAT_HEADER);
    assertThat(
            schema()
                .ingest(withoutValue(IngestSchema.HEARTBEAT_HEADER, NOW_MS + 86_400_001))
                .deadLetter()
                .getReason())
        .contains("heartbeat's timestamp", "ahead of the wall clock");
  }

  private static ConsumerRecord<byte[], byte[]> withoutValue(String header, long timestampMs) {
    RecordHeaders headers = new RecordHeaders();
    headers.add(header, new byte[] {1});
    return new ConsumerRecord<>(
        "events.cpu_stl",
        0,
        1,
        timestampMs,
        TimestampType.CREATE_TIME,
        -1,
        -1,
        null,
        null,
        headers,
        Optional.empty());
  }
}
