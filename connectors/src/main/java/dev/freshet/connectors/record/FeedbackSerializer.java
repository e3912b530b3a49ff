package dev.freshet.connectors.record;

import java.io.IOException;
import org.apache.flink.api.common.typeutils.SimpleTypeSerializerSnapshot;
import org.apache.flink.api.common.typeutils.TypeSerializerSnapshot;
import org.apache.flink.core.memory.DataInputView;
import org.apache.flink.core.memory.DataOutputView;

/** Serializer of {@link Feedback}. */
public final class FeedbackSerializer extends CodecSerializer<Feedback> {

  private static final long serialVersionUID = 1L;

  @Override
  public void serialize(Feedback feedback, DataOutputView target) throws IOException {
    target.writeUTF(feedback.key());
    target.writeLong(feedback.version().timestampMicros());
    target.writeShort(feedback.version().origin());
    target.writeDouble(feedback.error());
    target.writeLong(feedback.timestampMs());
    target.writeBoolean(feedback.demand());
  }

  @Override
  public Feedback deserialize(DataInputView source) throws IOException {
    String key = source.readUTF();
    Version version = new Version(source.readLong(), source.readUnsignedShort());
    return new Feedback(key, version, source.readDouble(), source.readLong(), source.readBoolean());
  }

  @Override
  public TypeSerializerSnapshot<Feedback> snapshotConfiguration() {
    return new Snapshot();
  }

  /** Snapshot of the serializer; it has no configuration. */
  public static final class Snapshot extends SimpleTypeSerializerSnapshot<Feedback> {
    public Snapshot() {
      super(FeedbackSerializer::new);
    }
  }
}
