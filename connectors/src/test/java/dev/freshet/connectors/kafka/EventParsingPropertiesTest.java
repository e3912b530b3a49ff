package dev.freshet.connectors.kafka;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.freshet.connectors.format.TableConfig;
import dev.freshet.connectors.kafka.Ingested.Tag;
import dev.freshet.connectors.record.Event;
import dev.freshet.connectors.record.RecordTypeInfo;
import dev.freshet.connectors.testing.TestConfigs;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.constraints.LongRange;
import net.jqwik.api.constraints.Size;
import org.apache.flink.api.common.serialization.SerializerConfigImpl;
import org.apache.flink.api.common.typeutils.TypeSerializer;
import org.apache.flink.core.memory.DataInputDeserializer;
import org.apache.flink.core.memory.DataOutputSerializer;
import org.apache.kafka.clients.consumer.ConsumerRecord;

/** What any JSON writer writes comes out as it was, and no bytes make the parser throw. */
final class EventParsingPropertiesTest {

  private static final ObjectMapper MAPPER = new ObjectMapper();
  private static final TypeSerializer<Ingested<Event>> SERIALIZER =
      IngestSchema.producedType(RecordTypeInfo.EVENT).createSerializer(new SerializerConfigImpl());

  private static Ingested<Event> ingest(String kind, byte[] json) {
    IngestSchema<Event> schema =
        new IngestSchema<>(
            TableConfig.parse(
                TestConfigs.table("\"kind\": \"scalar\"", "\"kind\": \"" + kind + "\"")),
            EventParser::new,
            RecordTypeInfo.EVENT);
    schema.open(() -> Long.MAX_VALUE / 2);
    return schema.ingest(new ConsumerRecord<>("t", 0, 0, null, json));
  }

  @Provide
  Arbitrary<String> keys() {
    return Arbitraries.strings()
        .withCharRange('\u0000', '\uD7FF')
        .withCharRange('\uE000', '\uFFFF')
        .ofMinLength(1)
        .ofMaxLength(100);
  }

  @Property
  void aVectorRoundTrips(
      @ForAll("keys") String key,
      @ForAll @LongRange(min = 0, max = Long.MAX_VALUE / 2) long timestampMs,
      @ForAll @Size(min = 1, max = 50) double[] vector)
      throws Exception {
    ObjectNode json = MAPPER.createObjectNode().put("ts", timestampMs).put("key", key);
    json.set("value", MAPPER.valueToTree(vector));

    Ingested<Event> ingested = ingest("vector", MAPPER.writeValueAsBytes(json));

    assertThat(ingested.tag()).isEqualTo(Tag.VALUE);
    assertThat(ingested.value().key()).isEqualTo(key);
    assertThat(ingested.timestampMs()).isEqualTo(timestampMs);
    ByteBuffer expected =
        ByteBuffer.allocate(vector.length * Double.BYTES).order(ByteOrder.LITTLE_ENDIAN);
    expected.asDoubleBuffer().put(vector);
    assertThat(ingested.value().value()).isEqualTo(expected.array());
    assertThat(serialized(ingested)).usingRecursiveComparison().isEqualTo(ingested);
  }

  @Property
  void noBytesMakeItThrow(@ForAll byte[] bytes, @ForAll("kinds") String kind) throws Exception {
    Ingested<Event> ingested = ingest(kind, bytes);
    assertThat(ingested.tag()).isEqualTo(Tag.DEAD_LETTER);
    assertThat(serialized(ingested).deadLetter()).isEqualTo(ingested.deadLetter());
  }

  @Property
  void aCutRecordIsADeadLetter(@ForAll("kinds") String kind, @ForAll double number) {
    String value =
        switch (kind) {
          case "scalar" -> String.valueOf(number);
          case "vector" -> "[" + number + "," + number + "]";
          default -> "{\"a\": [" + number + "]}";
        };
    byte[] whole = ("{\"key\": \"kü\", \"ts\": 5, \"value\": " + value + "}").getBytes(UTF_8);
    assertThat(ingest(kind, whole).tag()).isEqualTo(Tag.VALUE);
    for (int length = 0; length < whole.length; length++) {
      byte[] cut = java.util.Arrays.copyOf(whole, length);
      assertThat(ingest(kind, cut).tag()).as(new String(cut, UTF_8)).isEqualTo(Tag.DEAD_LETTER);
    }
  }

  @Provide
  Arbitrary<String> kinds() {
    return Arbitraries.of("scalar", "vector", "json");
  }

  private static Ingested<Event> serialized(Ingested<Event> ingested) throws Exception {
    DataOutputSerializer out = new DataOutputSerializer(64);
    SERIALIZER.serialize(ingested, out);
    return SERIALIZER.deserialize(new DataInputDeserializer(out.getCopyOfBuffer()));
  }
}
