package dev.freshet.connectors.record;

import java.io.IOException;
import org.apache.flink.api.common.typeutils.base.TypeSerializerSingleton;
import org.apache.flink.core.memory.DataInputView;
import org.apache.flink.core.memory.DataOutputView;

/**
 * Serializer of an immutable record: a copy is the record itself, so a subclass writes and reads
 * only. Subclasses are stateless singletons with a public nullary constructor.
 */
public abstract class CodecSerializer<T> extends TypeSerializerSingleton<T> {

  private static final long serialVersionUID = 1L;

  @Override
  public boolean isImmutableType() {
    return true;
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
  public T deserialize(T reuse, DataInputView source) throws IOException {
    return deserialize(source);
  }

  @Override
  public void copy(DataInputView source, DataOutputView target) throws IOException {
    serialize(deserialize(source), target);
  }
}
