package dev.freshet.operators.dissemination;

import dev.freshet.connectors.format.AvroRecordTypeInfo;
import dev.freshet.connectors.format.RegionsConfig;
import dev.freshet.connectors.kafka.LogRecord;
import dev.freshet.connectors.kafka.SinkStreams;
import dev.freshet.schemas.DeadLetter;
import dev.freshet.schemas.RegionReport;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;

/** Composes a region's job: inbox, keyed by partition -> online store, and next hops. */
public final class RegionStreams {

  private RegionStreams() {}

  /**
   * What comes out of the region's operator.
   *
   * @param reports of its subtasks
   * @param deadLetters chunks and changes that cannot be used
   */
  public record Regional(DataStream<RegionReport> reports, DataStream<DeadLetter> deadLetters) {}

  /**
   * Applies what other regions send, and sends it on.
   *
   * @param inbox of the region, as it is read
   * @param settingsJson what the region keeps: see {@code RegionSettings}
   * @param parallelism at most the partitions of the inbox
   * @throws IllegalArgumentException if a configuration is not valid, or they do not fit
   */
  public static Regional receive(
      DataStream<LogRecord> inbox, String settingsJson, String regionsJson, int parallelism) {
    RegionsConfig config = RegionsConfig.parse(regionsJson);
    TransportFactory transports = new KafkaTransports(config)::transport;
    SingleOutputStreamOperator<RegionReport> reports =
        inbox
            .keyBy(LogRecord::partition, Types.INT)
            .transform(
                "Apply and send on what comes to " + config.region(),
                AvroRecordTypeInfo.of(RegionReport.class),
                new RegionOperatorFactory(RegionSettings.parse(settingsJson), config, transports))
            .uid(config.uid("region"))
            .setParallelism(parallelism);
    return new Regional(reports, reports.getSideOutput(RegionOperator.DEAD_LETTERS));
  }

  /** Writes reports to home's topic, and what could not be used to the region's own. */
  public static void write(Regional regional, String regionsJson) {
    SinkStreams.regionReports(regional.reports(), regionsJson);
    SinkStreams.regionDeadLetters(regional.deadLetters(), regionsJson);
  }
}
