package dev.freshet.operators.compute;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.freshet.connectors.format.AvroRecordTypeInfo;
import dev.freshet.connectors.record.Version;
import dev.freshet.operators.compute.ComputeOutcomes.Ending;
import dev.freshet.schemas.DeadLetter;
import dev.freshet.schemas.FeatureChange;
import dev.freshet.schemas.Operation;
import dev.freshet.schemas.Stage;
import dev.freshet.schemas.ValueEncoding;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.apache.flink.api.common.serialization.SerializerConfigImpl;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;
import org.apache.flink.streaming.util.OneInputStreamOperatorTestHarness;
import org.apache.flink.util.OutputTag;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Answers of the feature function become changes, dead letters, and outcomes for the scheduler. */
class FeatureResultDecoderTest {

  private static final OutputTag<DeadLetter> DEAD_LETTERS =
      new OutputTag<>("dead-letters", AvroRecordTypeInfo.DEAD_LETTER);
  private static final ComputeContext CONTEXT =
      new ComputeContext("k\u00e9y", new Version(1_234, 65_535), 99, true, 2.5);

  private OneInputStreamOperatorTestHarness<byte[], FeatureChange> harness;
  private ComputeOutcomes outcomes;

  @BeforeEach
  void open() throws Exception {
    harness =
        new OneInputStreamOperatorTestHarness<>(
            new FeatureResultDecoderFactory("table", DEAD_LETTERS), 1, 1, 0);
    harness.setup(AvroRecordTypeInfo.FEATURE_CHANGE.createSerializer(new SerializerConfigImpl()));
    harness.open();
    harness.setProcessingTime(5_000);
    outcomes = ComputeOutcomes.of(TaskIds.of(harness.getEnvironment(), "table"));
  }

  @AfterEach
  void close() throws Exception {
    harness.close();
  }

  private static ByteBuffer response(int count) {
    return ByteBuffer.allocate(4_096).order(ByteOrder.LITTLE_ENDIAN).put((byte) 1).putInt(count);
  }

  private static void add(
      ByteBuffer response, ComputeContext context, int status, int encoding, byte[] payload) {
    byte[] bytes = context.encode();
    response.putInt(bytes.length).put(bytes).put((byte) status).putLong(7_000);
    response.put((byte) encoding).putInt(payload.length).put(payload);
  }

  private void process(ByteBuffer response) throws Exception {
    byte[] bytes = new byte[response.position()];
    response.flip().get(bytes);
    harness.processElement(new StreamRecord<>(bytes));
  }

  private static byte[] utf8(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  @Test
  void valueBecomesAChange() throws Exception {
    ByteBuffer response = response(1);
    add(response, CONTEXT, 0, 1, new byte[] {1, 2, 3, 4});
    process(response);

    FeatureChange change = harness.extractOutputValues().get(0);
    assertThat(change.getTable().toString()).isEqualTo("table");
    assertThat(change.getKey().toString()).isEqualTo("k\u00e9y");
    assertThat(change.getVersionTimestamp()).isEqualTo(1_234);
    assertThat(change.getVersionOrigin()).isEqualTo(65_535);
    assertThat(change.getEventTime()).isEqualTo(99);
    assertThat(change.getComputedAt()).isEqualTo(5_000);
    assertThat(change.getOperation()).isEqualTo(Operation.UPSERT);
    assertThat(change.getEncoding()).isEqualTo(ValueEncoding.FLOAT32_VECTOR);
    assertThat(change.getValue()).isEqualTo(ByteBuffer.wrap(new byte[] {1, 2, 3, 4}));
    assertThat(change.getRegretRemoved()).isEqualTo(2.5);
    assertThat(change.getIsFirst()).isTrue();
    assertThat(outcomes.poll())
        .isEqualTo(
            new ComputeOutcomes.Outcome("k\u00e9y", new Version(1_234, 65_535), true, 7_000));
    assertThat(harness.getSideOutput(DEAD_LETTERS)).isNull();
  }

  @Test
  void failureAndTimeoutBecomeDeadLettersAndSpareTheirNeighbours() throws Exception {
    ByteBuffer response = response(3);
    add(response, CONTEXT, 1, 0, utf8("{\"reason\":\"it \u2260 5\",\"stack\":\"line 1\"}"));
    ComputeContext neighbour = new ComputeContext("b", new Version(2, 1), 98, false, 0);
    add(response, neighbour, 0, 2, new byte[] {9});
    ComputeContext slow = new ComputeContext("c", new Version(3, 1), 97, false, 0);
    add(response, slow, 2, 0, utf8("{\"reason\":\"timed out after 30 s\",\"stack\":null}"));
    process(response);

    assertThat(harness.extractOutputValues()).hasSize(1);
    assertThat(harness.extractOutputValues().get(0).getEncoding()).isEqualTo(ValueEncoding.AVRO);
    assertThat(harness.extractOutputValues().get(0).getIsFirst()).isFalse();
    List<DeadLetter> letters =
        harness.getSideOutput(DEAD_LETTERS).stream().map(StreamRecord::getValue).toList();
    assertThat(letters).hasSize(2);
    assertThat(letters.get(0).getStage()).isEqualTo(Stage.FUNCTION);
    assertThat(letters.get(0).getReason().toString()).isEqualTo("it \u2260 5");
    assertThat(letters.get(0).getStack().toString()).isEqualTo("line 1");
    assertThat(letters.get(0).getKey()).isEqualTo(ByteBuffer.wrap(utf8("k\u00e9y")));
    assertThat(letters.get(0).getEventTime()).isEqualTo(99);
    assertThat(letters.get(1).getReason().toString()).isEqualTo("timed out after 30 s");
    assertThat(letters.get(1).getStack()).isNull();
    assertThat(List.of(outcomes.poll(), outcomes.poll(), outcomes.poll()))
        .extracting(ComputeOutcomes.Outcome::ending)
        .containsExactly(Ending.FAILED, Ending.COMPUTED, Ending.FAILED);
    assertThat(outcomes.poll()).isNull();
  }

  @Test
  void rateLimitIsNoFailureAndIsPassedOn() throws Exception {
    ByteBuffer response = response(1);
    add(response, CONTEXT, 3, 0, utf8("{\"retry_after_ms\": 1500}"));
    process(response);

    assertThat(harness.extractOutputValues()).isEmpty();
    assertThat(harness.getSideOutput(DEAD_LETTERS)).isNull();
    assertThat(outcomes.poll())
        .isEqualTo(
            new ComputeOutcomes.Outcome(
                "k\u00e9y", new Version(1_234, 65_535), Ending.RATE_LIMITED, 0, 1_500));
  }

  @Test
  void payloadOutlivesTheBatch() throws Exception {
    ByteBuffer response = response(1);
    add(response, CONTEXT, 0, 1, new byte[] {5, 6});
    process(response);
    ByteBuffer value = harness.extractOutputValues().get(0).getValue();
    assertThat(value.remaining()).isEqualTo(2);
    assertThat(value.get(value.position())).isEqualTo((byte) 5);
  }

  @Test
  void otherFormatNamesTheFix() {
    assertThatThrownBy(() -> harness.processElement(new StreamRecord<>(new byte[] {2, 0, 0, 0, 0})))
        .hasMessageContaining("format 2")
        .hasMessageContaining("same release");
  }

  @Test
  void closingForgetsTheBoard() throws Exception {
    outcomes.report(new ComputeOutcomes.Outcome("a", Version.NONE, true, 1));
    harness.close();
    assertThat(ComputeOutcomes.of(TaskIds.of(harness.getEnvironment(), "table")))
        .isNotSameAs(outcomes);
  }
}
