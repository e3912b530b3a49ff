package dev.freshet.connectors.kafka;

import dev.freshet.connectors.format.AvroRecordTypeInfo;
import dev.freshet.connectors.format.DeploymentConfig;
import dev.freshet.connectors.format.TableConfig;
import dev.freshet.connectors.record.Event;
import dev.freshet.connectors.record.Feedback;
import dev.freshet.connectors.record.RecordTypeInfo;
import dev.freshet.schemas.DeadLetter;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.util.OutputTag;
import org.apache.kafka.clients.consumer.OffsetResetStrategy;

/** Composes the way from a topic of JSON to typed records: Kafka source -> route. */
public final class IngestStreams {

  private IngestStreams() {}

  /**
   * The table's events.
   *
   * @throws IllegalArgumentException if a configuration is not valid
   */
  public static Ingest<Event> events(
      StreamExecutionEnvironment env, String tableJson, String deploymentJson) {
    TableConfig config = TableConfig.parse(tableJson);
    return ingest(
        env,
        config,
        DeploymentConfig.parse(deploymentJson),
        "events",
        config.source().topic(),
        EventParser::new,
        RecordTypeInfo.EVENT);
  }

  /**
   * The models' feedback on the table.
   *
   * @throws IllegalArgumentException if a configuration is not valid
   */
  public static Ingest<Feedback> feedback(
      StreamExecutionEnvironment env, String tableJson, String deploymentJson) {
    TableConfig config = TableConfig.parse(tableJson);
    return ingest(
        env,
        config,
        DeploymentConfig.parse(deploymentJson),
        "feedback",
        config.feedbackTopic(),
        FeedbackParser::new,
        RecordTypeInfo.FEEDBACK);
  }

  private static <T> Ingest<T> ingest(
      StreamExecutionEnvironment env,
      TableConfig config,
      DeploymentConfig deployment,
      String what,
      String topic,
      IngestSchema.ParserFactory<T> parsers,
      RecordTypeInfo<T> type) {
    KafkaSource<Ingested<T>> source =
        KafkaSource.<Ingested<T>>builder()
            .setProperties(deployment.kafkaProperties())
            .setBootstrapServers(deployment.bootstrapServers())
            .setGroupId(deployment.group())
            .setClientIdPrefix(deployment.group() + "-" + what)
            .setTopics(topic)
            .setStartingOffsets(startingOffsets(deployment.startOffsets()))
            .setDeserializer(new IngestSchema<>(config, parsers, type))
            .build();
    OutputTag<DeadLetter> deadLetters =
        new OutputTag<>(what + "-dead-letters", AvroRecordTypeInfo.DEAD_LETTER);
    SingleOutputStreamOperator<T> records =
        env.fromSource(
                source,
                IngestWatermarks.of(config),
                "Read " + topic,
                IngestSchema.producedType(type))
            .uid(deployment.uid(what + "-source"))
            .setParallelism(config.parallelism())
            .process(new IngestRouter<T>(config.table(), deadLetters), type)
            .uid(deployment.uid(what + "-router"))
            .name("Set aside what cannot be used of " + topic)
            .setParallelism(config.parallelism());
    return new Ingest<>(records, records.getSideOutput(deadLetters));
  }

  /** Where a source without a checkpoint starts, by the configuration's word for it. */
  static OffsetsInitializer startingOffsets(String startOffsets) {
    return switch (startOffsets) {
      case DeploymentConfig.EARLIEST -> OffsetsInitializer.earliest();
      case DeploymentConfig.LATEST -> OffsetsInitializer.latest();
      default -> OffsetsInitializer.committedOffsets(OffsetResetStrategy.EARLIEST);
    };
  }
}
