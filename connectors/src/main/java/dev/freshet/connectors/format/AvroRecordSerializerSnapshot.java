package dev.freshet.connectors.format;

import java.io.IOException;
import org.apache.avro.Schema;
import org.apache.avro.SchemaCompatibility;
import org.apache.avro.SchemaCompatibility.SchemaCompatibilityType;
import org.apache.avro.specific.SpecificData;
import org.apache.avro.specific.SpecificRecordBase;
import org.apache.flink.api.common.typeutils.TypeSerializer;
import org.apache.flink.api.common.typeutils.TypeSerializerSchemaCompatibility;
import org.apache.flink.api.common.typeutils.TypeSerializerSnapshot;
import org.apache.flink.core.memory.DataInputView;
import org.apache.flink.core.memory.DataOutputView;
import org.apache.flink.util.InstantiationUtil;

/** Snapshot of {@link AvroRecordSerializer}: the record's class and the writer's schema. */
public final class AvroRecordSerializerSnapshot<T extends SpecificRecordBase>
    implements TypeSerializerSnapshot<T> {

  private static final int VERSION = 1;

  private Class<T> type;
  private Schema writerSchema;

  /** For Flink, which fills it from the snapshot. */
  public AvroRecordSerializerSnapshot() {}

  AvroRecordSerializerSnapshot(Class<T> type, Schema writerSchema) {
    this.type = type;
    this.writerSchema = writerSchema;
  }

  @Override
  public int getCurrentVersion() {
    return VERSION;
  }

  @Override
  public void writeSnapshot(DataOutputView out) throws IOException {
    out.writeUTF(type.getName());
    out.writeUTF(writerSchema.toString());
  }

  @Override
  public void readSnapshot(int readVersion, DataInputView in, ClassLoader classLoader)
      throws IOException {
    if (readVersion != VERSION) {
      throw new IOException(
          "state was written by version "
              + readVersion
              + " of the Avro serializer's snapshot, this one reads "
              + VERSION
              + "; restore it with the release that wrote it");
    }
    type = InstantiationUtil.resolveClassByName(in, classLoader);
    writerSchema = new Schema.Parser().parse(in.readUTF());
  }

  @Override
  public TypeSerializer<T> restoreSerializer() {
    return new AvroRecordSerializer<>(type, writerSchema);
  }

  @Override
  public TypeSerializerSchemaCompatibility<T> resolveSchemaCompatibility(
      TypeSerializerSnapshot<T> oldSnapshot) {
    if (!(oldSnapshot instanceof AvroRecordSerializerSnapshot<T> old) || !type.equals(old.type)) {
      return TypeSerializerSchemaCompatibility.incompatible();
    }
    if (writerSchema.equals(old.writerSchema)) {
      return TypeSerializerSchemaCompatibility.compatibleAsIs();
    }
    Schema current = SpecificData.get().getSchema(type);
    boolean readable =
        SchemaCompatibility.checkReaderWriterCompatibility(current, old.writerSchema).getType()
            == SchemaCompatibilityType.COMPATIBLE;
    return readable
        ? TypeSerializerSchemaCompatibility.compatibleAfterMigration()
        : TypeSerializerSchemaCompatibility.incompatible();
  }
}
