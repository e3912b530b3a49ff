package dev.freshet.connectors.format;

import static dev.freshet.connectors.testing.Changes.upsert;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.freshet.connectors.testing.Changes;
import dev.freshet.schemas.FeatureChange;
import dev.freshet.schemas.Progress;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.List;
import org.apache.avro.Schema;
import org.apache.avro.SchemaNormalization;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.io.BinaryEncoder;
import org.apache.avro.io.EncoderFactory;
import org.apache.avro.message.BinaryMessageEncoder;
import org.apache.flink.api.common.typeutils.TypeSerializer;
import org.apache.flink.api.common.typeutils.TypeSerializerSnapshot;
import org.apache.flink.core.memory.DataInputDeserializer;
import org.apache.flink.core.memory.DataOutputSerializer;
import org.apache.flink.util.InstantiationUtil;
import org.junit.jupiter.api.Test;

/** Avro on topics and in state: round trips, foreign bytes, and schemas that have changed. */
final class AvroFormatsTest {

  private static final SingleObjectCodec<FeatureChange> CODEC =
      SingleObjectCodec.of(FeatureChange.class);

  /** The schema as an older release might have had it: without regret_removed and operation. */
  private static Schema older() {
    Schema current = FeatureChange.getClassSchema();
    List<Schema.Field> fields =
        current.getFields().stream()
            .filter(f -> !f.name().equals("regret_removed") && !f.name().equals("operation"))
            .map(f -> new Schema.Field(f, f.schema()))
            .toList();
    return Schema.createRecord(current.getName(), "older", current.getNamespace(), false, fields);
  }

  private static GenericRecord olderRecord(Schema schema, FeatureChange change) {
    GenericRecord old = new GenericData.Record(schema);
    for (Schema.Field field : schema.getFields()) {
      Object value = change.get(field.name());
      old.put(
          field.name(),
          field.schema().getType() == Schema.Type.ENUM
              ? new GenericData.EnumSymbol(field.schema(), value.toString())
              : value);
    }
    return old;
  }

  @Test
  void singleObjectsRoundTripWithTheFingerprintInFront() throws IOException {
    FeatureChange change = upsert("k", 5, 1.5f);
    byte[] bytes = CODEC.encode(change);
    ByteBuffer header = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
    assertThat(header.getShort()).isEqualTo((short) 0x01C3);
    assertThat(header.getLong())
        .isEqualTo(SchemaNormalization.parsingFingerprint64(FeatureChange.getClassSchema()));
    assertThat(CODEC.decode(bytes)).isEqualTo(change);
    assertThat(CODEC.encode(change)).as("encoding does not consume").isEqualTo(bytes);
  }

  @Test
  void foreignBytesAreRefusedWithTheReason() {
    assertThatThrownBy(() -> CODEC.decode("{\"key\": 1}".getBytes()))
        .isInstanceOf(IOException.class)
        .hasMessageContaining("FeatureChange");
    assertThatThrownBy(() -> CODEC.decode(new byte[0])).isInstanceOf(IOException.class);
    byte[] progress =
        SingleObjectCodec.of(Progress.class).encode(new Progress("r", "t", 0, 1, 2L, 3L, 4L));
    assertThatThrownBy(() -> CODEC.decode(progress))
        .isInstanceOf(IOException.class)
        .hasMessageContaining("schema that is not known here");
    byte[] cut = java.util.Arrays.copyOf(CODEC.encode(upsert("k", 5, 1)), 14);
    assertThatThrownBy(() -> CODEC.decode(cut)).isInstanceOf(IOException.class);
  }

  @Test
  void readsWhatAnotherReleaseWrote() throws IOException {
    FeatureChange change = upsert("k", 5, 1.5f);
    ByteBuffer old =
        new BinaryMessageEncoder<GenericRecord>(GenericData.get(), older())
            .encode(olderRecord(older(), change));
    byte[] bytes = new byte[old.remaining()];
    old.get(bytes);
    assertThatThrownBy(() -> CODEC.decode(bytes)).hasMessageContaining("not known here");
    assertThat(SingleObjectCodec.of(FeatureChange.class).alsoReading(older()).decode(bytes))
        .isEqualTo(change);
  }

  /** Of the releases in the tests' resources, of which 0.0.1 has another schema of the record. */
  @Test
  void knowsTheSchemasOfReleases() {
    List<Schema> earlier =
        SchemaHistory.of(Progress.getClassSchema(), List.of("0.0.1", "0.1.0", "0.0.0"));
    assertThat(earlier).hasSize(1);
    assertThat(earlier.get(0).getField("writes")).isNull();
  }

  @Test
  void stateRoundTripsAlsoThroughJavaSerializationOfTheSerializer() throws Exception {
    TypeSerializer<FeatureChange> serializer =
        InstantiationUtil.clone(new AvroRecordSerializer<>(FeatureChange.class));
    DataOutputSerializer out = new DataOutputSerializer(64);
    serializer.serialize(upsert("a", 1, 1), out);
    serializer.serialize(Changes.delete("b", 2), out);
    DataInputDeserializer in = new DataInputDeserializer(out.getCopyOfBuffer());
    DataOutputSerializer copied = new DataOutputSerializer(64);
    serializer.copy(in, copied);
    assertThat(serializer.deserialize(in)).isEqualTo(Changes.delete("b", 2));
    assertThat(
            serializer.duplicate().deserialize(new DataInputDeserializer(copied.getCopyOfBuffer())))
        .isEqualTo(upsert("a", 1, 1));
  }

  @Test
  void stateOfAnotherReleaseIsReadThroughItsOwnSchema() throws Exception {
    FeatureChange change = upsert("k", 5, 1.5f);
    ByteArrayOutputStream body = new ByteArrayOutputStream();
    BinaryEncoder encoder = EncoderFactory.get().directBinaryEncoder(body, null);
    new GenericDatumWriter<GenericRecord>(older()).write(olderRecord(older(), change), encoder);
    DataOutputSerializer state = new DataOutputSerializer(64);
    state.writeInt(body.size());
    state.write(body.toByteArray());
    DataOutputSerializer snapshot = new DataOutputSerializer(64);
    TypeSerializerSnapshot.writeVersionedSnapshot(
        snapshot, new AvroRecordSerializerSnapshot<>(FeatureChange.class, older()));

    TypeSerializerSnapshot<FeatureChange> restored =
        TypeSerializerSnapshot.readVersionedSnapshot(
            new DataInputDeserializer(snapshot.getCopyOfBuffer()), getClass().getClassLoader());

    assertThat(
            restored
                .restoreSerializer()
                .deserialize(new DataInputDeserializer(state.getCopyOfBuffer())))
        .isEqualTo(change);
    TypeSerializerSnapshot<FeatureChange> current =
        new AvroRecordSerializer<>(FeatureChange.class).snapshotConfiguration();
    assertThat(current.resolveSchemaCompatibility(restored).isCompatibleAfterMigration()).isTrue();
    assertThat(current.resolveSchemaCompatibility(current).isCompatibleAsIs()).isTrue();
  }

  @Test
  void stateThatCannotBeReadIsIncompatible() {
    Schema other = Schema.createRecord("FeatureChange", null, "dev.freshet.schemas", false);
    other.setFields(List.of(new Schema.Field("table", Schema.create(Schema.Type.INT))));
    assertThat(
            new AvroRecordSerializer<>(FeatureChange.class)
                .snapshotConfiguration()
                .resolveSchemaCompatibility(
                    new AvroRecordSerializerSnapshot<>(FeatureChange.class, other))
                .isIncompatible())
        .isTrue();
  }
}
