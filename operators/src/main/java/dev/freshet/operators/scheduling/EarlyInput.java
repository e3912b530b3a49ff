package dev.freshet.operators.scheduling;

import dev.freshet.connectors.record.CodecSerializer;
import dev.freshet.connectors.record.Feedback;
import dev.freshet.connectors.record.Version;
import java.io.IOException;
import java.util.Comparator;
import org.apache.flink.api.common.typeutils.SimpleTypeSerializerSnapshot;
import org.apache.flink.api.common.typeutils.TypeSerializerSnapshot;
import org.apache.flink.core.memory.DataInputView;
import org.apache.flink.core.memory.DataOutputView;

/**
 * The effect on a key's record of an event or feedback whose event-time step has not ended yet. It
 * is applied at the step's end, so that what arrives early changes no earlier choice.
 *
 * @param timestampMs event time, epoch milliseconds
 * @param version version that feedback is about; null for an event
 * @param error error of feedback, NaN when unlabelled or for an event
 */
record EarlyInput(long timestampMs, Version version, double error) {

  /** Sums of errors must not depend on the order of arrival, down to the last bit. */
  static final Comparator<EarlyInput> ORDER =
      Comparator.comparingLong(EarlyInput::timestampMs)
          .thenComparing(input -> input.isEvent() ? Version.NONE : input.version())
          .thenComparingDouble(EarlyInput::error);

  static EarlyInput ofEvent(long timestampMs) {
    return new EarlyInput(timestampMs, null, Double.NaN);
  }

  static EarlyInput ofFeedback(Feedback feedback) {
    return new EarlyInput(feedback.timestampMs(), feedback.version(), feedback.error());
  }

  boolean isEvent() {
    return version == null;
  }

  /** Serializer of {@link EarlyInput}. */
  static final class Serializer extends CodecSerializer<EarlyInput> {

    private static final long serialVersionUID = 1L;

    @Override
    public void serialize(EarlyInput input, DataOutputView target) throws IOException {
      target.writeLong(input.timestampMs);
      target.writeBoolean(input.isEvent());
      if (!input.isEvent()) {
        target.writeLong(input.version.timestampMicros());
        target.writeShort(input.version.origin());
        target.writeDouble(input.error);
      }
    }

    @Override
    public EarlyInput deserialize(DataInputView source) throws IOException {
      long timestamp = source.readLong();
      if (source.readBoolean()) {
        return ofEvent(timestamp);
      }
      Version version = new Version(source.readLong(), source.readUnsignedShort());
      return new EarlyInput(timestamp, version, source.readDouble());
    }

    @Override
    public TypeSerializerSnapshot<EarlyInput> snapshotConfiguration() {
      return new Snapshot();
    }

    /** Snapshot of the serializer; it has no configuration. */
    public static final class Snapshot extends SimpleTypeSerializerSnapshot<EarlyInput> {
      public Snapshot() {
        super(Serializer::new);
      }
    }
  }
}
