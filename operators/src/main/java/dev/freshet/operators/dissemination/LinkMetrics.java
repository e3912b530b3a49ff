package dev.freshet.operators.dissemination;

import dev.freshet.connectors.metrics.MetricNames;
import org.apache.flink.metrics.MetricGroup;

/** The metrics that every link has, whoever sends on it. */
final class LinkMetrics {

  private LinkMetrics() {}

  /**
   * Tells what a link holds and has delivered.
   *
   * @param ours group of all metrics of ours
   * @return the link's group
   */
  static MetricGroup of(Link link, MetricGroup ours) {
    MetricGroup group = ours.addGroup(MetricNames.LINK, link.region());
    group.gauge(MetricNames.BACKLOG_KEYS, link::backlogKeys);
    group.gauge(MetricNames.WIRE_BYTES, () -> link.counters().wireBytes());
    group.gauge(MetricNames.RAW_BYTES, () -> link.counters().rawBytes());
    return group;
  }
}
