package dev.freshet.connectors.kafka;

import dev.freshet.connectors.format.RegionsConfig;
import dev.freshet.connectors.format.TableConfig;
import java.util.Properties;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.connector.source.Source;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.KafkaSourceBuilder;
import org.apache.flink.connector.kafka.source.KafkaSourceOptions;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/**
 * The topics that take changes to regions, read as they are: every record with its partition and
 * offset, without watermarks.
 */
public final class LogStreams {

  private LogStreams() {}

  /**
   * A table's changes, from home's broker. Without a checkpoint it starts as {@code start_offsets}
   * says.
   *
   * @throws IllegalArgumentException if a configuration is not valid
   */
  public static DataStream<LogRecord> changes(
      StreamExecutionEnvironment env, String tableJson, String regionsJson, int parallelism) {
    RegionsConfig config = RegionsConfig.parse(regionsJson);
    String topic = TableConfig.parse(tableJson).changesTopic();
    KafkaSource<LogRecord> source =
        builder(config.homeKafkaProperties(), config, "changes", topic)
            .setStartingOffsets(IngestStreams.startingOffsets(config.startOffsets()))
            .build();
    return attach(env, source, config, "changes", topic, parallelism);
  }

  /**
   * What other regions send to this one, from its own broker. Without a checkpoint it starts as
   * {@code start_offsets} says.
   *
   * @throws IllegalArgumentException if the configuration is not valid
   */
  public static DataStream<LogRecord> inbox(
      StreamExecutionEnvironment env, String regionsJson, int parallelism) {
    RegionsConfig config = RegionsConfig.parse(regionsJson);
    KafkaSource<LogRecord> source =
        builder(config.kafkaProperties(), config, "inbox", config.inboxTopic())
            .setStartingOffsets(IngestStreams.startingOffsets(config.startOffsets()))
            .build();
    return attach(env, source, config, "inbox", config.inboxTopic(), parallelism);
  }

  /**
   * All reports, from home's broker and by one subtask: at every start from the topic's beginning,
   * which compaction keeps small, also after a failure.
   *
   * @throws IllegalArgumentException if the configuration is not valid
   */
  public static DataStream<LogRecord> progress(StreamExecutionEnvironment env, String regionsJson) {
    RegionsConfig config = RegionsConfig.parse(regionsJson);
    KafkaSource<LogRecord> source =
        builder(config.homeKafkaProperties(), config, "progress", config.progressTopic())
            .setStartingOffsets(OffsetsInitializer.earliest())
            .setProperty(KafkaSourceOptions.COMMIT_OFFSETS_ON_CHECKPOINT.key(), "false")
            .build();
    return attach(
        env, new RewindingSource<>(source), config, "progress", config.progressTopic(), 1);
  }

  private static KafkaSourceBuilder<LogRecord> builder(
      Properties kafka, RegionsConfig config, String what, String topic) {
    return KafkaSource.<LogRecord>builder()
        .setProperties(kafka)
        .setGroupId(config.group())
        .setClientIdPrefix(config.group() + "-" + what)
        .setTopics(topic)
        .setDeserializer(new LogSchema());
  }

  private static DataStream<LogRecord> attach(
      StreamExecutionEnvironment env,
      Source<LogRecord, ?, ?> source,
      RegionsConfig config,
      String what,
      String topic,
      int parallelism) {
    return env.fromSource(source, WatermarkStrategy.noWatermarks(), "Read " + topic, LogRecord.TYPE)
        .uid(config.uid(what + "-source"))
        .setParallelism(parallelism);
  }
}
