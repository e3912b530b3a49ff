package dev.freshet.connectors.kafka;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.flink.api.common.eventtime.Watermark;
import org.apache.flink.api.common.eventtime.WatermarkOutput;
import org.junit.jupiter.api.Test;

/** What moves event time, when, and how far. */
final class IngestWatermarksTest {

  private final Recorder output = new Recorder();

  private static final class Recorder implements WatermarkOutput {
    private final List<Object> seen = new ArrayList<>();

    @Override
    public void emitWatermark(Watermark watermark) {
      seen.add(watermark.getTimestamp());
    }

    @Override
    public void markIdle() {
      seen.add("idle");
    }

    @Override
    public void markActive() {
      seen.add("active");
    }
  }

  private void event(IngestWatermarks.Partition<String> generator, long timestampMs) {
    generator.onEvent(Ingested.value("v", timestampMs), timestampMs, output);
  }

  private void heartbeat(IngestWatermarks.Partition<String> generator, long timestampMs) {
    generator.onEvent(Ingested.heartbeat(timestampMs), timestampMs, output);
  }

  @Test
  void theTimelineOfItsDescription() {
    var generator = new IngestWatermarks.Partition<String>(10);
    event(generator, 100);
    assertThat(output.seen).as("a record waits for the periodic emission").isEmpty();
    generator.onPeriodicEmit(output);
    heartbeat(generator, 100);
    event(generator, 105);
    generator.onPeriodicEmit(output);
    event(generator, 120);
    generator.onPeriodicEmit(output);
    assertThat(output.seen).containsExactly(89L, 100L, 100L, 109L);
  }

  @Test
  void withoutOutOfOrdernessARecordLeavesRoomForItsOwnMillisecond() {
    var generator = new IngestWatermarks.Partition<String>(0);
    event(generator, 100);
    event(generator, 40);
    generator.onPeriodicEmit(output);
    heartbeat(generator, 100);
    assertThat(output.seen).containsExactly(99L, 100L);
  }

  @Test
  void whatHasNoTimestampMovesNothing() {
    var generator = new IngestWatermarks.Partition<String>(0);
    generator.onPeriodicEmit(output);
    generator.onEvent(
        Ingested.value("feedback", Ingested.NO_TIMESTAMP), Ingested.NO_TIMESTAMP, output);
    generator.onEvent(Ingested.deadLetter(null), Ingested.NO_TIMESTAMP, output);
    generator.onPeriodicEmit(output);
    assertThat(output.seen).isEmpty();
  }

  @Test
  void aSubtaskWithoutPartitionsIsIdleAfterTheGrace() {
    AtomicLong nanos = new AtomicLong();
    var assignment = new IngestWatermarks.Assignment();
    var generator = new IngestWatermarks.MainOutput<String>(assignment, nanos::get);
    generator.onPeriodicEmit(output);
    nanos.addAndGet(IngestWatermarks.ASSIGNMENT_GRACE.toNanos() - 1);
    generator.onPeriodicEmit(output);
    assertThat(output.seen).isEmpty();
    nanos.addAndGet(1);
    generator.onPeriodicEmit(output);
    assertThat(output.seen).containsExactly("idle");

    assignment.partitions++;
    generator.onPeriodicEmit(output);
    assertThat(output.seen).as("its partitions speak for it now").hasSize(1);
  }
}
