package dev.freshet.connectors.kafka;

import dev.freshet.connectors.format.AvroRecordTypeInfo;
import dev.freshet.connectors.kafka.Ingested.Tag;
import dev.freshet.schemas.DeadLetter;
import java.io.IOException;
import org.apache.flink.api.common.serialization.SerializerConfigImpl;
import org.apache.flink.api.common.typeutils.CompositeTypeSerializerSnapshot;
import org.apache.flink.api.common.typeutils.TypeSerializer;
import org.apache.flink.api.common.typeutils.TypeSerializerSnapshot;
import org.apache.flink.core.memory.DataInputView;
import org.apache.flink.core.memory.DataOutputView;

/**
 * Serializer of {@link Ingested}. The router is chained to its source, so it serves only where a
 * cluster disables chaining.
 */
public final class IngestedSerializer<T> extends TypeSerializer<Ingested<T>> {

  private static final long serialVersionUID = 1L;
  private static final Tag[] TAGS = Tag.values();

  private final TypeSerializer<T> values;
  private final TypeSerializer<DeadLetter> deadLetters;

  IngestedSerializer(TypeSerializer<T> values) {
    this(values, AvroRecordTypeInfo.DEAD_LETTER.createSerializer(new SerializerConfigImpl()));
  }

  private IngestedSerializer(TypeSerializer<T> values, TypeSerializer<DeadLetter> deadLetters) {
    this.values = values;
    this.deadLetters = deadLetters;
  }

  @Override
  public void serialize(Ingested<T> record, DataOutputView target) throws IOException {
    target.writeByte(record.tag().ordinal());
    target.writeLong(record.timestampMs());
    switch (record.tag()) {
      case VALUE -> values.serialize(record.value(), target);
      case DEAD_LETTER -> deadLetters.serialize(record.deadLetter(), target);
      case HEARTBEAT -> {}
    }
  }

  @Override
  public Ingested<T> deserialize(DataInputView source) throws IOException {
    Tag tag = TAGS[source.readByte()];
    long timestampMs = source.readLong();
    return switch (tag) {
      case VALUE -> Ingested.value(values.deserialize(source), timestampMs);
      case DEAD_LETTER -> Ingested.deadLetter(deadLetters.deserialize(source));
      case HEARTBEAT -> Ingested.heartbeat(timestampMs);
    };
  }

  @Override
  public Ingested<T> deserialize(Ingested<T> reuse, DataInputView source) throws IOException {
    return deserialize(source);
  }

  @Override
  public void copy(DataInputView source, DataOutputView target) throws IOException {
    serialize(deserialize(source), target);
  }

  @Override
  public boolean isImmutableType() {
    return true;
  }

  @Override
  public TypeSerializer<Ingested<T>> duplicate() {
    return new IngestedSerializer<>(values.duplicate(), deadLetters.duplicate());
  }

  @Override
  public Ingested<T> createInstance() {
    return null;
  }

  @Override
  public Ingested<T> copy(Ingested<T> from) {
    return from;
  }

  @Override
  public Ingested<T> copy(Ingested<T> from, Ingested<T> reuse) {
    return from;
  }

  @Override
  public int getLength() {
    return -1;
  }

  @Override
  public TypeSerializerSnapshot<Ingested<T>> snapshotConfiguration() {
    return new Snapshot<>(this);
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof IngestedSerializer<?> that && values.equals(that.values);
  }

  @Override
  public int hashCode() {
    return values.hashCode();
  }

  /** Snapshot: that of the serializers of the value and of the dead letter. */
  public static final class Snapshot<T>
      extends CompositeTypeSerializerSnapshot<Ingested<T>, IngestedSerializer<T>> {

    private static final int VERSION = 1;

    /** For Flink, which fills it from the snapshot. */
    public Snapshot() {}

    Snapshot(IngestedSerializer<T> serializer) {
      super(serializer);
    }

    @Override
    protected int getCurrentOuterSnapshotVersion() {
      return VERSION;
    }

    @Override
    protected TypeSerializer<?>[] getNestedSerializers(IngestedSerializer<T> outer) {
      return new TypeSerializer<?>[] {outer.values, outer.deadLetters};
    }

    @Override
    @SuppressWarnings("unchecked")
    protected IngestedSerializer<T> createOuterSerializerWithNestedSerializers(
        TypeSerializer<?>[] nested) {
      return new IngestedSerializer<>(
          (TypeSerializer<T>) nested[0], (TypeSerializer<DeadLetter>) nested[1]);
    }
  }
}
