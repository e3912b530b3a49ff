package dev.freshet.operators.scheduling;

import dev.freshet.benchmarks.CountingOutput;
import dev.freshet.operators.compute.ComputeContext;
import dev.freshet.operators.compute.ComputeOutcomes;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;

/**
 * Stands behind the scheduler for a feature function that takes no time: it reads the batch and
 * tells the scheduler that every key of it was computed.
 */
final class ComputedAtOnce extends CountingOutput<byte[]> {

  /** Time that the computation of a key is said to have taken; it sizes the batches. */
  private static final long COMPUTE_NANOS = 1_000_000;

  private static final int HEADER_BYTES = 1;

  private final ComputeOutcomes outcomes;

  ComputedAtOnce(ComputeOutcomes outcomes) {
    this.outcomes = outcomes;
  }

  @Override
  public void collect(StreamRecord<byte[]> batch) {
    ByteBuffer buffer = ByteBuffer.wrap(batch.getValue()).order(ByteOrder.LITTLE_ENDIAN);
    buffer.position(HEADER_BYTES);
    int count = buffer.getInt();
    for (int i = 0; i < count; i++) {
      int contextLength = buffer.getInt();
      ComputeContext context =
          ComputeContext.decode(buffer.slice(buffer.position(), contextLength));
      skip(buffer, contextLength);
      skip(buffer, Short.toUnsignedInt(buffer.getShort()));
      skip(buffer, Long.BYTES + Byte.BYTES);
      int points = buffer.getInt();
      int dimensions = buffer.getInt();
      skip(buffer, points * (1 + dimensions) * Long.BYTES);
      outcomes.report(
          new ComputeOutcomes.Outcome(context.key(), context.version(), true, COMPUTE_NANOS));
    }
    super.collect(batch);
  }

  private static void skip(ByteBuffer buffer, int bytes) {
    buffer.position(buffer.position() + bytes);
  }
}
