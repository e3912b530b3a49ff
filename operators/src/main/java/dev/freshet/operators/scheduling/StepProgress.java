package dev.freshet.operators.scheduling;

import dev.freshet.connectors.record.CodecSerializer;
import java.io.IOException;
import java.util.List;
import org.apache.flink.api.common.typeutils.SimpleTypeSerializerSnapshot;
import org.apache.flink.api.common.typeutils.TypeSerializerSnapshot;
import org.apache.flink.core.memory.DataInputView;
import org.apache.flink.core.memory.DataOutputView;

/**
 * How far one subtask is in its event-time steps; operator state, so that a restored run makes the
 * same choices.
 *
 * @param subtask index of the subtask, 0-based
 * @param parallelism number of subtasks when this was written
 * @param lastDecided end of the last step that was decided, epoch milliseconds
 * @param credit budget left, in updates
 */
record StepProgress(int subtask, int parallelism, long lastDecided, double credit) {

  /** No step yet. */
  static final long NONE = Long.MIN_VALUE;

  /**
   * What a subtask continues with. At the same parallelism it is the subtask's own progress; after
   * a rescaling all subtasks had decided the same steps, because watermarks are broadcast ahead of
   * a checkpoint's barrier, and what is left of the budget is divided anew.
   *
   * @param all progress of all subtasks; not empty
   */
  static StepProgress restore(List<StepProgress> all, int subtask, int parallelism) {
    long lastDecided = NONE;
    double credit = 0;
    for (StepProgress progress : all) {
      if (progress.parallelism == parallelism && progress.subtask == subtask) {
        return progress;
      }
      lastDecided = Math.max(lastDecided, progress.lastDecided);
      credit += progress.credit;
    }
    return new StepProgress(subtask, parallelism, lastDecided, credit / parallelism);
  }

  /** Serializer of {@link StepProgress}. */
  static final class Serializer extends CodecSerializer<StepProgress> {

    private static final long serialVersionUID = 1L;

    @Override
    public void serialize(StepProgress progress, DataOutputView target) throws IOException {
      target.writeInt(progress.subtask);
      target.writeInt(progress.parallelism);
      target.writeLong(progress.lastDecided);
      target.writeDouble(progress.credit);
    }

    @Override
    public StepProgress deserialize(DataInputView source) throws IOException {
      return new StepProgress(
          source.readInt(), source.readInt(), source.readLong(), source.readDouble());
    }

    @Override
    public TypeSerializerSnapshot<StepProgress> snapshotConfiguration() {
      return new Snapshot();
    }

    /** Snapshot of the serializer; it has no configuration. */
    public static final class Snapshot extends SimpleTypeSerializerSnapshot<StepProgress> {
      public Snapshot() {
        super(Serializer::new);
      }
    }
  }
}
