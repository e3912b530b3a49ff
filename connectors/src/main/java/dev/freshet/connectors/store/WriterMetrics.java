package dev.freshet.connectors.store;

import dev.freshet.connectors.metrics.MetricNames;
import org.apache.flink.metrics.Counter;
import org.apache.flink.metrics.Histogram;
import org.apache.flink.metrics.MetricGroup;

/** The writer's metrics; {@link MetricNames} describes each. */
final class WriterMetrics extends StoreMetrics {

  final Counter writes;
  final Counter writesDuplicate;
  final Counter writesKeptAsOlder;
  final Counter writesStale;
  final Counter writesRestored;
  final Counter deadLetters;
  final Histogram stalenessAtWriteMs;

  WriterMetrics(MetricGroup operator, String table) {
    this(tableGroup(operator, table));
  }

  private WriterMetrics(MetricGroup group) {
    super(group);
    writes = group.counter(MetricNames.WRITES);
    writesDuplicate = group.counter(MetricNames.WRITES_DUPLICATE);
    writesKeptAsOlder = group.counter(MetricNames.WRITES_KEPT_AS_OLDER);
    writesStale = group.counter(MetricNames.WRITES_STALE);
    writesRestored = group.counter(MetricNames.WRITES_RESTORED);
    deadLetters = group.counter(MetricNames.DEAD_LETTERS);
    stalenessAtWriteMs = histogram(group, MetricNames.STALENESS_AT_WRITE_MS);
  }
}
