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
 * @param feedback what a model told; null for an event
 */
record EarlyInput(long timestampMs, QueryFeedback feedback) {

  /**
   * A step's events count before its feedback: what is fed back on a missing value counts for a key
   * that has had an event. Sums of errors must not depend on the order of arrival, down to the last
   * bit.
   */
  static final Comparator<EarlyInput> ORDER =
      Comparator.comparing(EarlyInput::isEvent)
          .reversed()
          .thenComparingLong(EarlyInput::timestampMs)
          .thenComparing(EarlyInput::feedback, Comparator.nullsFirst(Comparator.naturalOrder()));

  static EarlyInput ofEvent(long timestampMs) {
    return new EarlyInput(timestampMs, null);
  }

  static EarlyInput ofFeedback(Feedback feedback) {
    return new EarlyInput(feedback.timestampMs(), QueryFeedback.of(feedback));
  }

  boolean isEvent() {
    return feedback == null;
  }

  /** Serializer of {@link EarlyInput}; the byte after the time says what follows. */
  static final class Serializer extends CodecSerializer<EarlyInput> {

    private static final long serialVersionUID = 1L;

    /** Version and error. */
    private static final int FEEDBACK = 0;

    /** Nothing. */
    private static final int EVENT = 1;

    /** Version, error, and the errors of two versions. */
    private static final int PAIRED_FEEDBACK = 2;

    @Override
    public void serialize(EarlyInput input, DataOutputView target) throws IOException {
      target.writeLong(input.timestampMs);
      if (input.isEvent()) {
        target.writeByte(EVENT);
        return;
      }
      QueryFeedback feedback = input.feedback;
      target.writeByte(feedback.isPaired() ? PAIRED_FEEDBACK : FEEDBACK);
      target.writeLong(feedback.version().timestampMicros());
      target.writeShort(feedback.version().origin());
      target.writeDouble(feedback.error());
      if (feedback.isPaired()) {
        target.writeDouble(feedback.newestError());
        target.writeDouble(feedback.previousError());
      }
    }

    @Override
    public EarlyInput deserialize(DataInputView source) throws IOException {
      long timestamp = source.readLong();
      int kind = source.readByte();
      if (kind == EVENT) {
        return ofEvent(timestamp);
      }
      if (kind != FEEDBACK && kind != PAIRED_FEEDBACK) {
        throw new IOException(
            "early input of kind "
                + kind
                + " is of a later build; restore the savepoint with the build that wrote it, or a"
                + " later one");
      }
      Version version = new Version(source.readLong(), source.readUnsignedShort());
      double error = source.readDouble();
      return new EarlyInput(
          timestamp,
          kind == PAIRED_FEEDBACK
              ? new QueryFeedback(version, error, source.readDouble(), source.readDouble())
              : QueryFeedback.of(version, error));
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
