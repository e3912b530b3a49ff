package dev.freshet.operators.dissemination;

import dev.freshet.connectors.format.AvroRecordTypeInfo;
import dev.freshet.connectors.format.RegionsConfig;
import dev.freshet.connectors.kafka.LogRecord;
import dev.freshet.connectors.kafka.SinkStreams;
import dev.freshet.schemas.DeadLetter;
import dev.freshet.schemas.RegionReport;
import org.apache.flink.api.common.typeinfo.PrimitiveArrayTypeInfo;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.transformations.PartitionTransformation;
import org.apache.flink.streaming.api.transformations.TwoInputTransformation;
import org.apache.flink.streaming.runtime.partitioner.BroadcastPartitioner;

/** Composes the multicast job: changes, keyed by shard, and reports and plans -> next hops. */
public final class MulticastStreams {

  private MulticastStreams() {}

  /**
   * What comes out of the multicast operator.
   *
   * @param reports of its subtasks
   * @param deadLetters changes that cannot be read
   */
  public record Multicast(DataStream<RegionReport> reports, DataStream<DeadLetter> deadLetters) {}

  /** A table's changes with shards' numbers among those of all tables in place of partitions. */
  public static DataStream<LogRecord> numbered(
      DataStream<LogRecord> changes, String settingsJson, String table) {
    int first = new Shards(MulticastSettings.parse(settingsJson).tables()).first(table);
    return changes
        .map(
            record -> new LogRecord(first + record.partition(), record.offset(), record.value()),
            LogRecord.TYPE)
        .name("Number the shards of " + table)
        .uid(table + "/shard-numbers")
        .setParallelism(changes.getParallelism());
  }

  /** The values of records, for Python. */
  public static DataStream<byte[]> bytes(DataStream<LogRecord> records) {
    return records
        .map(LogRecord::value, PrimitiveArrayTypeInfo.BYTE_PRIMITIVE_ARRAY_TYPE_INFO)
        .name("Take the values")
        .uid("report-values")
        .setParallelism(records.getParallelism());
  }

  /** Messages of Python's, as the multicast operator takes them beside reports. */
  public static DataStream<LogRecord> control(DataStream<byte[]> messages) {
    return messages
        .map(message -> new LogRecord(0, 0, message), LogRecord.TYPE)
        .name("Take plans")
        .uid("plan-messages")
        .setParallelism(1);
  }

  /**
   * Sends changes to other regions.
   *
   * @param changes {@link #numbered}, of all tables
   * @param control reports and plans
   * @throws IllegalArgumentException if a configuration is not valid
   */
  public static Multicast multicast(
      DataStream<LogRecord> changes,
      DataStream<LogRecord> control,
      String settingsJson,
      String regionsJson) {
    MulticastSettings settings = MulticastSettings.parse(settingsJson);
    RegionsConfig regions = RegionsConfig.parse(regionsJson);
    Shards shards = new Shards(settings.tables());
    String name = "Send changes to regions";
    // Keyed and broadcast: no method of Flink's takes an operator of one's own for these two.
    TwoInputTransformation<LogRecord, LogRecord, RegionReport> transformation =
        new TwoInputTransformation<>(
            changes
                .keyBy(record -> shards.get(record.partition()).key(), Types.STRING)
                .getTransformation(),
            new PartitionTransformation<>(
                control.getTransformation(), new BroadcastPartitioner<>()),
            name,
            new MulticastOperatorFactory(settings, new KafkaTransports(regions)),
            AvroRecordTypeInfo.of(RegionReport.class),
            changes.getExecutionEnvironment().getParallelism());
    transformation.setStateKeySelectors(record -> shards.get(record.partition()).key(), null);
    transformation.setStateKeyType(Types.STRING);
    SingleOutputStreamOperator<RegionReport> reports =
        new Reports(changes.getExecutionEnvironment(), transformation);
    changes.getExecutionEnvironment().addOperator(transformation);
    reports.uid(regions.uid("multicast"));
    return new Multicast(reports, reports.getSideOutput(MulticastOperator.DEAD_LETTERS));
  }

  /** Writes reports of regions to home's topic, keyed by who reports what. */
  public static void reports(DataStream<RegionReport> reports, String regionsJson) {
    SinkStreams.regionReports(reports, regionsJson);
  }

  /** Writes what could not be used to the dead letters of the job's region. */
  public static void deadLetters(DataStream<DeadLetter> deadLetters, String regionsJson) {
    SinkStreams.regionDeadLetters(deadLetters, regionsJson);
  }

  /** Gives the transformation its place in the program. */
  private static final class Reports extends SingleOutputStreamOperator<RegionReport> {
    Reports(
        StreamExecutionEnvironment environment,
        TwoInputTransformation<LogRecord, LogRecord, RegionReport> transformation) {
      super(environment, transformation);
    }
  }
}
