package dev.freshet.operators.compute;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.freshet.connectors.metrics.MetricNames;
import dev.freshet.connectors.record.Version;
import dev.freshet.schemas.DeadLetter;
import dev.freshet.schemas.FeatureChange;
import dev.freshet.schemas.Operation;
import dev.freshet.schemas.Stage;
import dev.freshet.schemas.ValueEncoding;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import org.apache.flink.metrics.Counter;
import org.apache.flink.streaming.api.operators.AbstractStreamOperator;
import org.apache.flink.streaming.api.operators.OneInputStreamOperator;
import org.apache.flink.streaming.api.operators.StreamOperatorParameters;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;
import org.apache.flink.util.OutputTag;

/**
 * Turns the feature function's answers into changes for the online store, its failures into dead
 * letters, and tells the scheduler of both, and of what was put off by a rate limit.
 */
final class FeatureResultDecoder extends AbstractStreamOperator<FeatureChange>
    implements OneInputStreamOperator<byte[], FeatureChange> {

  private static final long serialVersionUID = 1L;
  private static final ObjectMapper JSON = new ObjectMapper();

  private final String table;
  private final OutputTag<DeadLetter> deadLetters;
  private transient ComputeOutcomes outcomes;
  private transient Counter deadLetterCount;

  FeatureResultDecoder(
      StreamOperatorParameters<FeatureChange> parameters,
      String table,
      OutputTag<DeadLetter> deadLetters) {
    super(parameters);
    this.table = table;
    this.deadLetters = deadLetters;
  }

  @Override
  public void open() throws Exception {
    super.open();
    outcomes = ComputeOutcomes.of(TaskIds.of(getContainingTask().getEnvironment(), table));
    deadLetterCount =
        getMetricGroup()
            .addGroup(MetricNames.GROUP)
            .addGroup(MetricNames.TABLE, table)
            .counter(MetricNames.DEAD_LETTERS);
  }

  @Override
  public void close() throws Exception {
    // Beside the scheduler's removal: its open may fail before it has asked for the board.
    ComputeOutcomes.remove(TaskIds.of(getContainingTask().getEnvironment(), table));
    super.close();
  }

  @Override
  public void processElement(StreamRecord<byte[]> element) throws IOException {
    long now = getProcessingTimeService().getCurrentProcessingTime();
    for (ComputeResult result : ComputeResult.decodeAll(element.getValue())) {
      switch (result.status()) {
        case OK -> output.collect(new StreamRecord<>(toChange(result, now)));
        case FAILED, TIMED_OUT -> {
          deadLetterCount.inc();
          output.collect(deadLetters, new StreamRecord<>(toDeadLetter(result)));
        }
        case RATE_LIMITED -> {}
      }
      outcomes.report(toOutcome(result));
    }
  }

  private static ComputeOutcomes.Outcome toOutcome(ComputeResult result) throws IOException {
    String key = result.context().key();
    Version version = result.context().version();
    return switch (result.status()) {
      case OK -> new ComputeOutcomes.Outcome(key, version, true, result.computeNanos());
      case FAILED, TIMED_OUT ->
          new ComputeOutcomes.Outcome(key, version, false, result.computeNanos());
      case RATE_LIMITED ->
          ComputeOutcomes.Outcome.rateLimited(
              key, version, readPayload(result).path("retry_after_ms").asLong());
    };
  }

  private FeatureChange toChange(ComputeResult result, long now) {
    ComputeContext context = result.context();
    return FeatureChange.newBuilder()
        .setTable(table)
        .setKey(context.key())
        .setVersionTimestamp(context.version().timestampMicros())
        .setVersionOrigin(context.version().origin())
        .setEventTime(context.eventTimeMs())
        .setComputedAt(now)
        .setOperation(Operation.UPSERT)
        .setEncoding(ValueEncoding.values()[result.encoding()])
        .setValue(result.payload())
        .setIsFirst(context.isFirst())
        .setRegretRemoved(context.regretRemoved())
        .build();
  }

  private static JsonNode readPayload(ComputeResult result) throws IOException {
    byte[] payload = new byte[result.payload().remaining()];
    result.payload().duplicate().get(payload);
    return JSON.readTree(payload);
  }

  private DeadLetter toDeadLetter(ComputeResult result) throws IOException {
    JsonNode failure = readPayload(result);
    ComputeContext context = result.context();
    return DeadLetter.newBuilder()
        .setTable(table)
        .setStage(Stage.FUNCTION)
        .setReason(failure.path("reason").asText())
        .setKey(ByteBuffer.wrap(context.key().getBytes(StandardCharsets.UTF_8)))
        .setEventTime(context.eventTimeMs())
        .setStack(failure.path("stack").asText(null))
        .build();
  }
}
