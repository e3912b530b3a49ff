package dev.freshet.connectors.record;

import java.io.IOException;
import org.apache.flink.api.common.typeutils.SimpleTypeSerializerSnapshot;
import org.apache.flink.api.common.typeutils.TypeSerializerSnapshot;
import org.apache.flink.core.memory.DataInputView;
import org.apache.flink.core.memory.DataOutputView;

/** Serializer of {@link Event}. */
public final class EventSerializer extends CodecSerializer<Event> {

  private static final long serialVersionUID = 1L;

  @Override
  public void serialize(Event event, DataOutputView target) throws IOException {
    target.writeUTF(event.key());
    target.writeLong(event.timestampMs());
    target.writeLong(event.id());
    target.writeByte(event.kind().ordinal());
    target.writeInt(event.value().length);
    target.write(event.value());
  }

  @Override
  public Event deserialize(DataInputView source) throws IOException {
    String key = source.readUTF();
    long timestamp = source.readLong();
    long id = source.readLong();
    ValueKind kind = ValueKind.of(source.readByte());
    byte[] value = new byte[source.readInt()];
    source.readFully(value);
    return new Event(key, timestamp, id, kind, value);
  }

  @Override
  public TypeSerializerSnapshot<Event> snapshotConfiguration() {
    return new Snapshot();
  }

  /** Snapshot of the serializer; it has no configuration. */
  public static final class Snapshot extends SimpleTypeSerializerSnapshot<Event> {
    public Snapshot() {
      super(EventSerializer::new);
    }
  }
}
