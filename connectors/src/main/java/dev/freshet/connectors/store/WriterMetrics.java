package dev.freshet.connectors.store;

import dev.freshet.connectors.metrics.MetricNames;
import org.apache.flink.metrics.Counter;
import org.apache.flink.metrics.Histogram;
import org.apache.flink.metrics.MetricGroup;
import org.apache.flink.runtime.metrics.DescriptiveStatisticsHistogram;

/** The writer's metrics; {@link MetricNames} describes each. */
final class WriterMetrics {

  /** Recent values that a histogram describes. */
  private static final int HISTOGRAM_WINDOW = 2_000;

  final Counter writes;
  final Counter writesDuplicate;
  final Counter writesKeptAsOlder;
  final Counter writesStale;
  final Counter writesRestored;
  final Counter storeRetries;
  final Counter deadLetters;
  final Histogram stalenessAtWriteMs;
  final Histogram storeLatencyMicros;

  WriterMetrics(MetricGroup operator, String table) {
    MetricGroup group = operator.addGroup(MetricNames.GROUP).addGroup(MetricNames.TABLE, table);
    writes = group.counter(MetricNames.WRITES);
    writesDuplicate = group.counter(MetricNames.WRITES_DUPLICATE);
    writesKeptAsOlder = group.counter(MetricNames.WRITES_KEPT_AS_OLDER);
    writesStale = group.counter(MetricNames.WRITES_STALE);
    writesRestored = group.counter(MetricNames.WRITES_RESTORED);
    storeRetries = group.counter(MetricNames.STORE_RETRIES);
    deadLetters = group.counter(MetricNames.DEAD_LETTERS);
    stalenessAtWriteMs = histogram(group, MetricNames.STALENESS_AT_WRITE_MS);
    storeLatencyMicros = histogram(group, MetricNames.STORE_LATENCY_MICROS);
  }

  private static Histogram histogram(MetricGroup group, String name) {
    return group.histogram(name, new DescriptiveStatisticsHistogram(HISTOGRAM_WINDOW));
  }
}
