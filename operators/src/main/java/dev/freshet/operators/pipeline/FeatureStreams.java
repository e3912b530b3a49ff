package dev.freshet.operators.pipeline;

import dev.freshet.connectors.format.AvroRecordTypeInfo;
import dev.freshet.connectors.format.DeploymentConfig;
import dev.freshet.connectors.format.TableConfig;
import dev.freshet.connectors.record.Event;
import dev.freshet.connectors.record.Feedback;
import dev.freshet.operators.compute.FeatureResultDecoderFactory;
import dev.freshet.operators.scheduling.FeatureMaintenanceOperatorFactory;
import dev.freshet.operators.scheduling.MaintenanceSettings;
import dev.freshet.schemas.DeadLetter;
import dev.freshet.schemas.FeatureChange;
import org.apache.flink.api.common.typeinfo.PrimitiveArrayTypeInfo;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.util.OutputTag;

/** Composes the feature maintenance operators; called by the job script. */
public final class FeatureStreams {

  private FeatureStreams() {}

  /**
   * Schedules the computations of a table.
   *
   * @return what to compute, for the feature function; it must be the next operator of the same
   *     chain
   */
  public static Scheduled maintain(
      DataStream<Event> events,
      DataStream<Feedback> feedback,
      String tableJson,
      String deploymentJson) {
    MaintenanceSettings settings = MaintenanceSettings.of(TableConfig.parse(tableJson));
    OutputTag<DeadLetter> deadLetters =
        new OutputTag<>("windows-too-large", AvroRecordTypeInfo.DEAD_LETTER);
    SingleOutputStreamOperator<byte[]> requests =
        events
            .keyBy(Event::key, Types.STRING)
            .connect(feedback.keyBy(Feedback::key, Types.STRING))
            .transform(
                "Schedule features of " + settings.table(),
                PrimitiveArrayTypeInfo.BYTE_PRIMITIVE_ARRAY_TYPE_INFO,
                new FeatureMaintenanceOperatorFactory(settings, deadLetters))
            .uid(DeploymentConfig.parse(deploymentJson).uid("feature-maintenance"));
    return new Scheduled(requests, requests.getSideOutput(deadLetters));
  }

  /**
   * Decodes the feature function's answers.
   *
   * @param results batches of results in the format that {@code ComputeResult} reads
   */
  public static Results decode(
      DataStream<byte[]> results, String tableJson, String deploymentJson) {
    String table = TableConfig.parse(tableJson).table();
    OutputTag<DeadLetter> deadLetters =
        new OutputTag<>("failed-computations", AvroRecordTypeInfo.DEAD_LETTER);
    SingleOutputStreamOperator<FeatureChange> changes =
        results
            .transform(
                "Decode features of " + table,
                AvroRecordTypeInfo.FEATURE_CHANGE,
                new FeatureResultDecoderFactory(table, deadLetters))
            .uid(DeploymentConfig.parse(deploymentJson).uid("feature-result-decoder"));
    return new Results(changes, changes.getSideOutput(deadLetters));
  }

  /**
   * What is to be computed.
   *
   * @param requests batches of windows, as {@code ComputeRequestEncoder} writes them
   * @param deadLetters windows that can't be computed
   */
  public record Scheduled(DataStream<byte[]> requests, DataStream<DeadLetter> deadLetters) {}

  /**
   * The decoded answers.
   *
   * @param changes computed values, to be written to the online store
   * @param deadLetters failed computations
   */
  public record Results(DataStream<FeatureChange> changes, DataStream<DeadLetter> deadLetters) {}
}
