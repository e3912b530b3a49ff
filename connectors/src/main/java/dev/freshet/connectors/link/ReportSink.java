package dev.freshet.connectors.link;

import dev.freshet.connectors.format.RegionsConfig;
import dev.freshet.connectors.format.SingleObjectCodec;
import dev.freshet.schemas.RegionReport;
import org.apache.flink.api.connector.sink2.Sink;
import org.apache.flink.api.connector.sink2.SinkWriter;
import org.apache.flink.api.connector.sink2.WriterInitContext;

/**
 * Reports of regions, to home's progress topic: best effort, so that a home that cannot be reached
 * neither holds up a checkpoint nor fails the job ({@link ProgressReporter}).
 */
public final class ReportSink implements Sink<RegionReport> {

  private static final long serialVersionUID = 1L;

  private final RegionsConfig config;

  public ReportSink(RegionsConfig config) {
    this.config = config;
  }

  @Override
  public SinkWriter<RegionReport> createWriter(WriterInitContext context) {
    return new Writer(
        new ProgressReporter(
            config.homeKafkaProperties(),
            config.progressTopic(),
            config.group() + "-reports-" + context.getTaskInfo().getIndexOfThisSubtask()));
  }

  /** A record's key: who reports of what. */
  static String key(RegionReport report) {
    return String.join(
        "/",
        "report",
        report.getReporter().name(),
        report.getRegion(),
        report.getTable(),
        String.valueOf(report.getSubtask()));
  }

  private record Writer(ProgressReporter reporter, SingleObjectCodec<RegionReport> codec)
      implements SinkWriter<RegionReport> {

    Writer(ProgressReporter reporter) {
      this(reporter, SingleObjectCodec.of(RegionReport.class));
    }

    @Override
    public void write(RegionReport report, Context context) {
      reporter.report(key(report), codec.encode(report));
    }

    @Override
    public void flush(boolean endOfInput) {
      // The newest state comes again with the next report.
    }

    @Override
    public void close() {
      reporter.close();
    }
  }
}
