package dev.freshet.connectors.kafka;

import dev.freshet.connectors.metrics.MetricNames;
import dev.freshet.schemas.DeadLetter;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.metrics.Counter;
import org.apache.flink.streaming.api.functions.ProcessFunction;
import org.apache.flink.util.Collector;
import org.apache.flink.util.OutputTag;

/**
 * Sends values on and dead letters aside; a heartbeat ends here, its watermark has been sent by the
 * source.
 */
final class IngestRouter<T> extends ProcessFunction<Ingested<T>, T> {

  private static final long serialVersionUID = 1L;

  private final String table;
  private final OutputTag<DeadLetter> deadLetterTag;
  private transient Counter deadLetters;

  IngestRouter(String table, OutputTag<DeadLetter> deadLetterTag) {
    this.table = table;
    this.deadLetterTag = deadLetterTag;
  }

  @Override
  public void open(OpenContext context) {
    deadLetters =
        getRuntimeContext()
            .getMetricGroup()
            .addGroup(MetricNames.GROUP)
            .addGroup(MetricNames.TABLE, table)
            .counter(MetricNames.DEAD_LETTERS);
  }

  @Override
  public void processElement(Ingested<T> record, Context context, Collector<T> out) {
    switch (record.tag()) {
      case VALUE -> out.collect(record.value());
      case DEAD_LETTER -> {
        deadLetters.inc();
        context.output(deadLetterTag, record.deadLetter());
      }
      case HEARTBEAT -> {}
    }
  }
}
