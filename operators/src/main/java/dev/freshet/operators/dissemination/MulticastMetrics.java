package dev.freshet.operators.dissemination;

import dev.freshet.connectors.metrics.MetricNames;
import java.util.HashMap;
import java.util.Map;
import org.apache.flink.metrics.Counter;
import org.apache.flink.metrics.MetricGroup;
import org.apache.flink.util.clock.Clock;

/** The metrics of one subtask of the multicast job; {@link MetricNames} describes each. */
final class MulticastMetrics {

  private final MetricGroup ours;
  private final Clock clock;
  private final Map<String, Counter> deadLetters = new HashMap<>();

  /**
   * @param operator the operator's group
   */
  MulticastMetrics(MetricGroup operator, Clock clock) {
    this.ours = operator.addGroup(MetricNames.GROUP);
    this.clock = clock;
  }

  void link(Link link) {
    LinkMetrics.of(link, ours);
  }

  void table(DisseminatedTable table) {
    MetricGroup group = ours.addGroup(MetricNames.TABLE, table.settings().table());
    // A plan's number is the time at which it was made.
    group.gauge(
        MetricNames.PLAN_AGE_MS,
        () -> table.planNumber() == 0 ? 0 : clock.absoluteTimeMillis() - table.planNumber());
    deadLetters.put(table.settings().table(), group.counter(MetricNames.DEAD_LETTERS));
  }

  void region(String region, String table, RegionLag lag) {
    ours.addGroup(MetricNames.REGION, region)
        .addGroup(MetricNames.TABLE, table)
        .gauge(MetricNames.BEHIND_MS, () -> lag.behindMs(clock.absoluteTimeMillis()));
  }

  void deadLetter(String table) {
    deadLetters.get(table).inc();
  }
}
