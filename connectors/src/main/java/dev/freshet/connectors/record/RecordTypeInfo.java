package dev.freshet.connectors.record;

import java.util.Objects;
import org.apache.flink.api.common.serialization.SerializerConfig;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeutils.TypeSerializer;

/** Type information of a record with its own {@link CodecSerializer}. */
public final class RecordTypeInfo<T> extends TypeInformation<T> {

  private static final long serialVersionUID = 1L;

  /** Raw events. */
  public static final RecordTypeInfo<Event> EVENT =
      new RecordTypeInfo<>(Event.class, new EventSerializer());

  /** Feedback of models. */
  public static final RecordTypeInfo<Feedback> FEEDBACK =
      new RecordTypeInfo<>(Feedback.class, new FeedbackSerializer());

  private final Class<T> type;
  private final TypeSerializer<T> serializer;

  public RecordTypeInfo(Class<T> type, TypeSerializer<T> serializer) {
    this.type = type;
    this.serializer = serializer;
  }

  @Override
  public boolean isBasicType() {
    return false;
  }

  @Override
  public boolean isTupleType() {
    return false;
  }

  @Override
  public int getArity() {
    return 1;
  }

  @Override
  public int getTotalFields() {
    return 1;
  }

  @Override
  public Class<T> getTypeClass() {
    return type;
  }

  @Override
  public boolean isKeyType() {
    return false;
  }

  @Override
  public TypeSerializer<T> createSerializer(SerializerConfig config) {
    return serializer;
  }

  @Override
  public String toString() {
    return "Record<" + type.getSimpleName() + ">";
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof RecordTypeInfo<?> that
        && type.equals(that.type)
        && serializer.equals(that.serializer);
  }

  @Override
  public int hashCode() {
    return Objects.hash(type, serializer);
  }

  @Override
  public boolean canEqual(Object other) {
    return other instanceof RecordTypeInfo;
  }
}
