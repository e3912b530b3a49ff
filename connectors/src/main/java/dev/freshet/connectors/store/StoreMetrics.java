package dev.freshet.connectors.store;

import dev.freshet.connectors.metrics.MetricNames;
import org.apache.flink.metrics.Counter;
import org.apache.flink.metrics.Histogram;
import org.apache.flink.metrics.MetricGroup;
import org.apache.flink.runtime.metrics.DescriptiveStatisticsHistogram;

/** Metrics of the way to the store, whoever writes; {@link MetricNames} describes each. */
class StoreMetrics {

  /** Recent values that a histogram describes. */
  private static final int HISTOGRAM_WINDOW = 2_000;

  final Counter storeRetries;
  final Histogram storeLatencyMicros;

  /**
   * @param group of the table
   */
  StoreMetrics(MetricGroup group) {
    storeRetries = group.counter(MetricNames.STORE_RETRIES);
    storeLatencyMicros = histogram(group, MetricNames.STORE_LATENCY_MICROS);
  }

  static MetricGroup tableGroup(MetricGroup operator, String table) {
    return operator.addGroup(MetricNames.GROUP).addGroup(MetricNames.TABLE, table);
  }

  static Histogram histogram(MetricGroup group, String name) {
    return group.histogram(name, new DescriptiveStatisticsHistogram(HISTOGRAM_WINDOW));
  }
}
