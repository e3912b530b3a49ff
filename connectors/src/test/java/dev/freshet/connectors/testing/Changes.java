package dev.freshet.connectors.testing;

import dev.freshet.schemas.FeatureChange;
import dev.freshet.schemas.Operation;
import dev.freshet.schemas.ValueEncoding;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/** Changes for tests. */
public final class Changes {

  private Changes() {}

  /** An upsert of one float, with origin 1. */
  public static FeatureChange upsert(String key, long versionTimestamp, float value) {
    return upsert(key, versionTimestamp, 1, value);
  }

  /** An upsert of one float. */
  public static FeatureChange upsert(
      String key, long versionTimestamp, int versionOrigin, float value) {
    ByteBuffer packed = ByteBuffer.allocate(Float.BYTES).order(ByteOrder.LITTLE_ENDIAN);
    packed.putFloat(value).flip();
    return FeatureChange.newBuilder()
        .setTable(TestConfigs.TABLE)
        .setKey(key)
        .setVersionTimestamp(versionTimestamp)
        .setVersionOrigin(versionOrigin)
        .setEventTime(1_700_000_000_000L)
        .setComputedAt(1_700_000_000_500L)
        .setOperation(Operation.UPSERT)
        .setEncoding(ValueEncoding.FLOAT32_VECTOR)
        .setValue(packed)
        .build();
  }

  /** A delete, with origin 1. */
  public static FeatureChange delete(String key, long versionTimestamp) {
    return FeatureChange.newBuilder(upsert(key, versionTimestamp, 0))
        .setOperation(Operation.DELETE)
        .setEncoding(ValueEncoding.NONE)
        .setValue(ByteBuffer.allocate(0))
        .build();
  }
}
