package dev.freshet.connectors.kafka;

import dev.freshet.connectors.record.CodecSerializer;
import java.io.IOException;
import org.apache.flink.api.common.typeutils.SimpleTypeSerializerSnapshot;
import org.apache.flink.api.common.typeutils.TypeSerializerSnapshot;
import org.apache.flink.core.memory.DataInputView;
import org.apache.flink.core.memory.DataOutputView;

/** Serializer of {@link LogRecord}. */
public final class LogRecordSerializer extends CodecSerializer<LogRecord> {

  private static final long serialVersionUID = 1L;

  @Override
  public void serialize(LogRecord record, DataOutputView target) throws IOException {
    target.writeInt(record.partition());
    target.writeLong(record.offset());
    target.writeInt(record.value().length);
    target.write(record.value());
  }

  @Override
  public LogRecord deserialize(DataInputView source) throws IOException {
    int partition = source.readInt();
    long offset = source.readLong();
    byte[] value = new byte[source.readInt()];
    source.readFully(value);
    return new LogRecord(partition, offset, value);
  }

  @Override
  public TypeSerializerSnapshot<LogRecord> snapshotConfiguration() {
    return new Snapshot();
  }

  /** Snapshot of the serializer; it has no configuration. */
  public static final class Snapshot extends SimpleTypeSerializerSnapshot<LogRecord> {
    public Snapshot() {
      super(LogRecordSerializer::new);
    }
  }
}
