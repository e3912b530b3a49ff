package dev.freshet.connectors.kafka;

import static java.nio.charset.StandardCharsets.UTF_8;

import dev.freshet.connectors.format.DeploymentConfig;
import dev.freshet.connectors.format.RegionsConfig;
import dev.freshet.connectors.format.TableConfig;
import dev.freshet.connectors.link.ReportSink;
import dev.freshet.connectors.record.DeadLetters;
import dev.freshet.schemas.DeadLetter;
import dev.freshet.schemas.FeatureChange;
import dev.freshet.schemas.Progress;
import dev.freshet.schemas.RegionReport;
import java.nio.ByteBuffer;
import java.util.Properties;
import org.apache.avro.specific.SpecificRecordBase;
import org.apache.flink.connector.base.DeliveryGuarantee;
import org.apache.flink.connector.kafka.sink.KafkaSink;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.util.function.SerializableFunction;
import org.apache.kafka.clients.producer.ProducerConfig;

/**
 * Composes the ends of a job: Avro records -> Kafka topics, at least once. A consumer of changes
 * that sees one twice drops it by its version.
 */
public final class SinkStreams {

  /** Waiting this long fills batches at high rates and costs little freshness at low ones. */
  private static final String LINGER_MS = "5";

  /** Room for a record's key and its other fields beside the largest value. */
  private static final int ENVELOPE_BYTES = 128 * 1024;

  private SinkStreams() {}

  /** Writes change events to the table's changes topic, keyed by entity key. */
  public static void changes(
      DataStream<FeatureChange> changes, String tableJson, String deploymentJson) {
    TableConfig config = TableConfig.parse(tableJson);
    attach(
        changes,
        config,
        DeploymentConfig.parse(deploymentJson),
        "changes",
        config.changesTopic(),
        FeatureChange.class,
        change -> change.getKey().getBytes(UTF_8),
        change -> change);
  }

  /** Writes progress records, keyed by {@code <region>/<table>/<subtask>}. */
  public static void progress(
      DataStream<Progress> progress, String tableJson, String deploymentJson) {
    TableConfig config = TableConfig.parse(tableJson);
    attach(
        progress,
        config,
        DeploymentConfig.parse(deploymentJson),
        "progress",
        config.progressTopic(),
        Progress.class,
        record ->
            (record.getRegion() + "/" + record.getTable() + "/" + record.getSubtask())
                .getBytes(UTF_8),
        record -> record);
  }

  /** Writes dead letters, keyed by the original key. */
  public static void deadLetters(
      DataStream<DeadLetter> deadLetters, String tableJson, String deploymentJson) {
    TableConfig config = TableConfig.parse(tableJson);
    attach(
        deadLetters,
        config,
        DeploymentConfig.parse(deploymentJson),
        "dead-letters",
        config.deadLettersTopic(),
        DeadLetter.class,
        letter -> bytes(letter.getKey()),
        DeadLetters::fit);
  }

  /**
   * Writes reports to home's progress topic, keyed by who reports of what: best effort, and without
   * waiting for home.
   */
  public static void regionReports(DataStream<RegionReport> reports, String regionsJson) {
    RegionsConfig config = RegionsConfig.parse(regionsJson);
    reports
        .sinkTo(new ReportSink(config))
        .uid(config.uid("report-sink"))
        .name("Report to " + config.progressTopic())
        .setParallelism(1);
  }

  /** Writes dead letters to the topic of the job's region, on its own broker. */
  public static void regionDeadLetters(DataStream<DeadLetter> deadLetters, String regionsJson) {
    RegionsConfig config = RegionsConfig.parse(regionsJson);
    attach(
        deadLetters,
        producerProperties(config.kafkaProperties(), DeadLetters.MAX_VALUE_BYTES),
        config.uid("dead-letters-sink"),
        config.deadLettersTopic(),
        1,
        DeadLetter.class,
        letter -> bytes(letter.getKey()),
        DeadLetters::fit);
  }

  private static <T extends SpecificRecordBase> void attach(
      DataStream<T> records,
      TableConfig config,
      DeploymentConfig deployment,
      String what,
      String topic,
      Class<T> type,
      SerializableFunction<T, byte[]> key,
      SerializableFunction<T, T> fit) {
    attach(
        records,
        producerProperties(
            deployment.kafkaProperties(),
            Math.max(config.maxValueBytes(), DeadLetters.MAX_VALUE_BYTES)),
        deployment.uid(what + "-sink"),
        topic,
        config.parallelism(),
        type,
        key,
        fit);
  }

  private static <T extends SpecificRecordBase> void attach(
      DataStream<T> records,
      Properties producer,
      String uid,
      String topic,
      int parallelism,
      Class<T> type,
      SerializableFunction<T, byte[]> key,
      SerializableFunction<T, T> fit) {
    records
        .sinkTo(
            new AtLeastOnceSink<>(
                KafkaSink.<T>builder()
                    .setBootstrapServers(
                        producer.getProperty(ProducerConfig.BOOTSTRAP_SERVERS_CONFIG))
                    .setKafkaProducerConfig(producer)
                    .setDeliveryGuarantee(DeliveryGuarantee.AT_LEAST_ONCE)
                    .setRecordSerializer(new AvroSinkSchema<>(topic, type, key, fit))
                    .build()))
        .uid(uid)
        .name("Write to " + topic)
        .setParallelism(parallelism);
  }

  /** The user's client properties, and ours where a promise depends on them. */
  private static Properties producerProperties(Properties kafka, int largestValueBytes) {
    Properties properties = new Properties();
    properties.setProperty(ProducerConfig.LINGER_MS_CONFIG, LINGER_MS);
    properties.setProperty(ProducerConfig.COMPRESSION_TYPE_CONFIG, "lz4");
    properties.setProperty(
        ProducerConfig.MAX_REQUEST_SIZE_CONFIG, String.valueOf(largestValueBytes + ENVELOPE_BYTES));
    properties.putAll(kafka);
    properties.setProperty(ProducerConfig.ACKS_CONFIG, "all");
    properties.setProperty(ProducerConfig.ENABLE_IDEMPOTENCE_CONFIG, "true");
    return properties;
  }

  private static byte[] bytes(ByteBuffer buffer) {
    if (buffer == null) {
      return null;
    }
    byte[] bytes = new byte[buffer.remaining()];
    buffer.duplicate().get(bytes);
    return bytes;
  }
}
