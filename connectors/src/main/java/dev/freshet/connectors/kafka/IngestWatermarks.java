package dev.freshet.connectors.kafka;

import dev.freshet.connectors.format.TableConfig;
import dev.freshet.connectors.kafka.Ingested.Tag;
import java.io.Serializable;
import java.time.Duration;
import java.util.function.LongSupplier;
import org.apache.flink.api.common.eventtime.Watermark;
import org.apache.flink.api.common.eventtime.WatermarkGenerator;
import org.apache.flink.api.common.eventtime.WatermarkGeneratorSupplier;
import org.apache.flink.api.common.eventtime.WatermarkOutput;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;

/**
 * Event time of a source. Each Kafka partition has a generator of its own, and Flink takes the
 * smallest of their watermarks.
 *
 * <p>A watermark t says: every record with a timestamp of at most t has arrived.
 *
 * <ul>
 *   <li>A record at t moves its partition's watermark to {@code t - out_of_orderness - 1}, at the
 *       next periodic emission: another record at t may follow.
 *   <li>A heartbeat at t moves it to t at once, whatever the out-of-orderness: the producer says
 *       that no record with a timestamp of at most t follows in this partition.
 *   <li>Dead letters and feedback without a timestamp do not move it.
 *   <li>A partition that is silent for {@code idle_timeout} no longer holds the others back. With a
 *       timeout of null it does so for ever, so that a replay's decisions do not depend on its
 *       pace.
 * </ul>
 *
 * <p>Worked timeline, out-of-orderness 10 ms: a record at 100 → watermark 89; a heartbeat at 100 →
 * 100; a record at 105 → still 100; a record at 120 → 109.
 *
 * <p>With more subtasks than partitions some subtasks have none. Flink's Kafka source does not mark
 * them idle: its enumerator signals the end of splits for bounded reads only, since a partition may
 * be added later. Left alone, they would hold the watermark back for ever where there is no idle
 * timeout. So the generator that Flink makes for a subtask's main output, the first of a subtask,
 * marks the subtask idle if it has been assigned no partition in {@link #ASSIGNMENT_GRACE}.
 * Partitions restored from a checkpoint are there from the start; a fresh start assigns them within
 * about a second of reaching the broker.
 */
final class IngestWatermarks {

  /** Long enough for the first assignment of partitions on a slow cluster. */
  static final Duration ASSIGNMENT_GRACE = Duration.ofSeconds(10);

  private IngestWatermarks() {}

  static <T> WatermarkStrategy<Ingested<T>> of(TableConfig config) {
    WatermarkStrategy<Ingested<T>> strategy =
        WatermarkStrategy.<Ingested<T>>forGenerator(new Generators<>(config.outOfOrdernessMs()))
            .withTimestampAssigner((record, kafkaTimestamp) -> record.timestampMs());
    return config.idleTimeoutMs() == null
        ? strategy
        : strategy.withIdleness(Duration.ofMillis(config.idleTimeoutMs()));
  }

  /**
   * Makes the generators of one subtask. Flink deserializes one supplier a subtask, asks it for the
   * generator of the main output first, and then for one a partition.
   */
  private static final class Generators<T> implements WatermarkGeneratorSupplier<Ingested<T>> {

    private static final long serialVersionUID = 1L;

    private final long outOfOrdernessMs;
    private transient Assignment assignment;

    Generators(long outOfOrdernessMs) {
      this.outOfOrdernessMs = outOfOrdernessMs;
    }

    @Override
    public WatermarkGenerator<Ingested<T>> createWatermarkGenerator(Context context) {
      if (assignment == null) {
        assignment = new Assignment();
        return new MainOutput<>(assignment, System::nanoTime);
      }
      assignment.partitions++;
      return new Partition<>(outOfOrdernessMs);
    }
  }

  /** What the generators of one subtask know of each other. */
  static final class Assignment implements Serializable {
    private static final long serialVersionUID = 1L;
    int partitions;
  }

  /** Generator of a subtask's main output, through which the Kafka source sends no record. */
  static final class MainOutput<T> implements WatermarkGenerator<Ingested<T>> {

    private final Assignment assignment;
    private final LongSupplier nanoTime;
    private final long startedNanos;

    MainOutput(Assignment assignment, LongSupplier nanoTime) {
      this.assignment = assignment;
      this.nanoTime = nanoTime;
      this.startedNanos = nanoTime.getAsLong();
    }

    @Override
    public void onEvent(Ingested<T> record, long timestampMs, WatermarkOutput output) {
      throw new IllegalStateException(
          "a record came without its partition; the source must emit through the splits' outputs");
    }

    @Override
    public void onPeriodicEmit(WatermarkOutput output) {
      if (assignment.partitions == 0
          && nanoTime.getAsLong() - startedNanos >= ASSIGNMENT_GRACE.toNanos()) {
        output.markIdle();
      }
    }
  }

  /** Generator of one partition. */
  static final class Partition<T> implements WatermarkGenerator<Ingested<T>> {

    private final long outOfOrdernessMs;
    private long watermarkMs = Long.MIN_VALUE;

    Partition(long outOfOrdernessMs) {
      this.outOfOrdernessMs = outOfOrdernessMs;
    }

    @Override
    public void onEvent(Ingested<T> record, long timestampMs, WatermarkOutput output) {
      if (record.timestampMs() == Ingested.NO_TIMESTAMP) {
        return;
      }
      if (record.tag() == Tag.HEARTBEAT) {
        watermarkMs = Math.max(watermarkMs, record.timestampMs());
        output.emitWatermark(new Watermark(watermarkMs));
      } else {
        watermarkMs = Math.max(watermarkMs, record.timestampMs() - outOfOrdernessMs - 1);
      }
    }

    @Override
    public void onPeriodicEmit(WatermarkOutput output) {
      if (watermarkMs != Long.MIN_VALUE) {
        output.emitWatermark(new Watermark(watermarkMs));
      }
    }
  }
}
