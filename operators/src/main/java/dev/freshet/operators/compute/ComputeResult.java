package dev.freshet.operators.compute;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;

/**
 * One key's outcome of the feature function.
 *
 * @param context the request's context
 * @param status how the computation ended
 * @param computeNanos time of the computation, nanoseconds
 * @param encoding of the payload: 0 none, 1 float32 vector, 2 Avro, as in the store layout
 * @param payload the packed value; of a failure, UTF-8 JSON with reason and stack; of a rate limit,
 *     UTF-8 JSON with retry_after_ms
 */
public record ComputeResult(
    ComputeContext context, Status status, long computeNanos, int encoding, ByteBuffer payload) {

  private static final byte FORMAT = 1;

  /** How a computation ended; the order is the wire code. */
  public enum Status {
    OK,
    FAILED,
    TIMED_OUT,
    /** Not a failure: to be tried again after the time in the payload. */
    RATE_LIMITED
  }

  /**
   * Decodes a batch of results. Little-endian:
   *
   * <pre>
   * u8 format = 1 | u32 count | count x
   *   u32 context length | context | u8 status | i64 compute time, ns | u8 encoding
   *   | u32 payload length | payload
   * </pre>
   *
   * @throws IllegalArgumentException if the bytes are of another format
   */
  public static List<ComputeResult> decodeAll(byte[] bytes) {
    ByteBuffer buffer = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
    byte format = buffer.get();
    if (format != FORMAT) {
      throw new IllegalArgumentException(
          "feature function answered in format "
              + format
              + ", expected "
              + FORMAT
              + "; the Python package and the jar must be of the same release");
    }
    int count = buffer.getInt();
    List<ComputeResult> results = new ArrayList<>(count);
    for (int i = 0; i < count; i++) {
      ComputeContext context = ComputeContext.decode(take(buffer));
      Status status = Status.values()[buffer.get()];
      long nanos = buffer.getLong();
      int encoding = buffer.get();
      results.add(new ComputeResult(context, status, nanos, encoding, take(buffer)));
    }
    return results;
  }

  private static ByteBuffer take(ByteBuffer buffer) {
    int length = buffer.getInt();
    ByteBuffer part = buffer.slice(buffer.position(), length);
    buffer.position(buffer.position() + length);
    return part;
  }
}
