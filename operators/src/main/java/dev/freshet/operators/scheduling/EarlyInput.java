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
 * The effect on a key's record of an event, feedback or demand whose event-time step has not ended
 * yet. It is applied at the step's end, so that what arrives early changes no earlier choice.
 *
 * @param timestampMs event time, epoch milliseconds
 * @param kind what it is
 * @param feedback what a model told; null for an event and a demand
 */
record EarlyInput(long timestampMs, Kind kind, QueryFeedback feedback) {

  /** What an input is, in order of application within a step. */
  enum Kind {
    EVENT,
    /** Counts on a missing value, and so after the step's events: for a key that has had one. */
    FEEDBACK,
    /** Counts when there is something to compute, and so after the step's events. */
    DEMAND
  }

  /** Sums of errors must not depend on the order of arrival, down to the last bit. */
  static final Comparator<EarlyInput> ORDER =
      Comparator.comparing(EarlyInput::kind)
          .thenComparingLong(EarlyInput::timestampMs)
          .thenComparing(EarlyInput::feedback, Comparator.nullsFirst(Comparator.naturalOrder()));

  static EarlyInput ofEvent(long timestampMs) {
    return new EarlyInput(timestampMs, Kind.EVENT, null);
  }

  static EarlyInput ofFeedback(Feedback feedback) {
    return ofFeedback(feedback.timestampMs(), QueryFeedback.of(feedback));
  }

  static EarlyInput ofFeedback(long timestampMs, QueryFeedback feedback) {
    return new EarlyInput(timestampMs, Kind.FEEDBACK, feedback);
  }

  static EarlyInput ofDemand(long timestampMs) {
    return new EarlyInput(timestampMs, Kind.DEMAND, null);
  }

  /** Serializer of {@link EarlyInput}; the byte after the time says what follows. */
  static final class Serializer extends CodecSerializer<EarlyInput> {

    private static final long serialVersionUID = 1L;

    /** Version and error. */
    private static final int FEEDBACK = 0;

    /** Nothing. */
    private static final int EVENT = 1;

    /** Nothing. */
    private static final int DEMAND = 2;

    @Override
    public void serialize(EarlyInput input, DataOutputView target) throws IOException {
      target.writeLong(input.timestampMs);
      switch (input.kind) {
        case EVENT -> target.writeByte(EVENT);
        case DEMAND -> target.writeByte(DEMAND);
        case FEEDBACK -> serialize(input.feedback, target);
      }
    }

    private static void serialize(QueryFeedback feedback, DataOutputView target)
        throws IOException {
      target.writeByte(FEEDBACK);
      target.writeLong(feedback.version().timestampMicros());
      target.writeShort(feedback.version().origin());
      target.writeDouble(feedback.error());
    }

    @Override
    public EarlyInput deserialize(DataInputView source) throws IOException {
      long timestamp = source.readLong();
      int kind = source.readByte();
      return switch (kind) {
        case EVENT -> ofEvent(timestamp);
        case DEMAND -> ofDemand(timestamp);
        case FEEDBACK -> ofFeedback(timestamp, feedback(source));
        default ->
            throw new IOException(
                "early input of kind "
                    + kind
                    + " is of a later build; restore the savepoint with the build that wrote it, or"
                    + " a later one");
      };
    }

    private static QueryFeedback feedback(DataInputView source) throws IOException {
      Version version = new Version(source.readLong(), source.readUnsignedShort());
      return new QueryFeedback(version, source.readDouble());
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
