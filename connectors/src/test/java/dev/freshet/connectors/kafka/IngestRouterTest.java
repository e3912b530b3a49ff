package dev.freshet.connectors.kafka;

import static org.assertj.core.api.Assertions.assertThat;

import dev.freshet.connectors.format.AvroRecordTypeInfo;
import dev.freshet.connectors.record.Feedback;
import dev.freshet.connectors.record.Version;
import dev.freshet.schemas.DeadLetter;
import org.apache.flink.streaming.api.operators.ProcessOperator;
import org.apache.flink.streaming.api.watermark.Watermark;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;
import org.apache.flink.streaming.util.OneInputStreamOperatorTestHarness;
import org.apache.flink.util.OutputTag;
import org.junit.jupiter.api.Test;

/** Each of the three kinds goes its way, and the watermark passes. */
final class IngestRouterTest {

  @Test
  void sendsEachKindItsWay() throws Exception {
    OutputTag<DeadLetter> tag = new OutputTag<>("dead", AvroRecordTypeInfo.DEAD_LETTER);
    Feedback feedback = new Feedback("k", new Version(1, 0), 1, 5);
    DeadLetter letter = DeadLetter.newBuilder().setTable("t").setReason("r").build();
    try (var harness =
        new OneInputStreamOperatorTestHarness<Ingested<Feedback>, Feedback>(
            new ProcessOperator<>(new IngestRouter<>("t", tag)))) {
      harness.open();
      harness.processElement(new StreamRecord<>(Ingested.value(feedback, 5), 5));
      harness.processElement(new StreamRecord<>(Ingested.deadLetter(letter)));
      harness.processElement(new StreamRecord<>(Ingested.heartbeat(9), 9));
      harness.processWatermark(9);

      assertThat(harness.getOutput())
          .containsExactly(new StreamRecord<>(feedback, 5), new Watermark(9));
      assertThat(harness.getSideOutput(tag))
          .extracting(StreamRecord::getValue)
          .containsExactly(letter);
    }
  }
}
