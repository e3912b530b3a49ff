package dev.freshet.connectors.format;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.ObjectInputStream;
import org.apache.avro.Schema;
import org.apache.avro.io.BinaryEncoder;
import org.apache.avro.io.DecoderFactory;
import org.apache.avro.io.EncoderFactory;
import org.apache.avro.specific.SpecificData;
import org.apache.avro.specific.SpecificDatumReader;
import org.apache.avro.specific.SpecificDatumWriter;
import org.apache.avro.specific.SpecificRecordBase;
import org.apache.flink.api.common.typeutils.TypeSerializer;
import org.apache.flink.api.common.typeutils.TypeSerializerSnapshot;
import org.apache.flink.core.memory.DataInputView;
import org.apache.flink.core.memory.DataOutputView;

/**
 * Flink serializer of a generated Avro record: a length, then Avro's binary encoding.
 *
 * <p>Records that travel through a job are treated as immutable: a copy is the record itself, as in
 * {@link dev.freshet.connectors.record.CodecSerializer}. Read a {@code bytes} field through {@link
 * java.nio.ByteBuffer#duplicate()}.
 *
 * <p>The snapshot carries the writer's schema, so state written by an older or newer version of the
 * schema is read through Avro's schema resolution.
 */
public final class AvroRecordSerializer<T extends SpecificRecordBase> extends TypeSerializer<T> {

  private static final long serialVersionUID = 1L;

  private final Class<T> type;

  /** What the bytes were written with, as JSON: Avro's own serial form of a schema is larger. */
  private final String writerSchema;

  private transient SpecificDatumReader<T> reader;
  private transient SpecificDatumWriter<T> writer;

  /** A serializer with the record's current schema. */
  public AvroRecordSerializer(Class<T> type) {
    this(type, SpecificData.get().getSchema(type));
  }

  /** A serializer that reads what another version of the schema wrote. */
  AvroRecordSerializer(Class<T> type, Schema writerSchema) {
    this.type = type;
    this.writerSchema = writerSchema.toString();
    prepare(writerSchema);
  }

  private void prepare(Schema written) {
    Schema current = SpecificData.get().getSchema(type);
    SpecificData data = SpecificData.getForClass(type);
    reader = new SpecificDatumReader<>(written, current, data);
    writer = new SpecificDatumWriter<>(current, data);
  }

  private void readObject(ObjectInputStream in) throws IOException, ClassNotFoundException {
    in.defaultReadObject();
    prepare(new Schema.Parser().parse(writerSchema));
  }

  @Override
  public void serialize(T value, DataOutputView target) throws IOException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream(256);
    BinaryEncoder encoder = EncoderFactory.get().directBinaryEncoder(bytes, null);
    writer.write(value, encoder);
    encoder.flush();
    target.writeInt(bytes.size());
    target.write(bytes.toByteArray());
  }

  @Override
  public T deserialize(DataInputView source) throws IOException {
    byte[] bytes = new byte[source.readInt()];
    source.readFully(bytes);
    return reader.read(null, DecoderFactory.get().binaryDecoder(bytes, null));
  }

  @Override
  public T deserialize(T reuse, DataInputView source) throws IOException {
    return deserialize(source);
  }

  @Override
  public void copy(DataInputView source, DataOutputView target) throws IOException {
    int length = source.readInt();
    target.writeInt(length);
    target.write(source, length);
  }

  @Override
  public boolean isImmutableType() {
    return true;
  }

  @Override
  public TypeSerializer<T> duplicate() {
    return new AvroRecordSerializer<>(type, new Schema.Parser().parse(writerSchema));
  }

  @Override
  public T createInstance() {
    return null;
  }

  @Override
  public T copy(T from) {
    return from;
  }

  @Override
  public T copy(T from, T reuse) {
    return from;
  }

  @Override
  public int getLength() {
    return -1;
  }

  @Override
  public TypeSerializerSnapshot<T> snapshotConfiguration() {
    return new AvroRecordSerializerSnapshot<>(type, SpecificData.get().getSchema(type));
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof AvroRecordSerializer<?> that
        && type.equals(that.type)
        && writerSchema.equals(that.writerSchema);
  }

  @Override
  public int hashCode() {
    return type.hashCode();
  }
}
