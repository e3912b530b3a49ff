package dev.freshet.operators.scheduling;

import dev.freshet.connectors.metrics.MetricNames;
import java.util.function.LongSupplier;
import org.apache.flink.metrics.Counter;
import org.apache.flink.metrics.Histogram;
import org.apache.flink.metrics.MetricGroup;
import org.apache.flink.runtime.metrics.DescriptiveStatisticsHistogram;

/** The metrics of one subtask's feature maintenance. */
final class MaintenanceMetrics {

  private static final int HISTOGRAM_SAMPLES = 1_000;
  private static final double NANOS_PER_MICRO = 1e3;

  final Counter updates;
  final Counter updatesFailed;
  final Counter updatesRateLimited;
  final Counter deadLetters;
  final Counter feedbackUsed;
  final Counter feedbackDropped;
  final Counter demands;
  final Counter demandsIgnored;
  final Counter eventsDuplicate;
  final Counter eventsTooLate;
  final Histogram computeTimeMicros;
  private final MetricGroup group;
  private double regret;
  private long keysWithRegret;
  private long keys;
  private double costNanos;
  private long keysWithCost;

  MaintenanceMetrics(MetricGroup operatorGroup, String table, RegretTimerService timers) {
    group = operatorGroup.addGroup(MetricNames.GROUP).addGroup(MetricNames.TABLE, table);
    updates = group.counter(MetricNames.UPDATES);
    updatesFailed = group.counter(MetricNames.UPDATES_FAILED);
    updatesRateLimited = group.counter(MetricNames.UPDATES_RATE_LIMITED);
    deadLetters = group.counter(MetricNames.DEAD_LETTERS);
    feedbackUsed = group.counter(MetricNames.FEEDBACK_USED);
    feedbackDropped = group.counter(MetricNames.FEEDBACK_DROPPED);
    demands = group.counter(MetricNames.DEMANDS);
    demandsIgnored = group.counter(MetricNames.DEMANDS_IGNORED);
    eventsDuplicate = group.counter(MetricNames.EVENTS_DUPLICATE);
    eventsTooLate = group.counter(MetricNames.EVENTS_TOO_LATE);
    computeTimeMicros =
        group.histogram(
            MetricNames.COMPUTE_TIME_MICROS, new DescriptiveStatisticsHistogram(HISTOGRAM_SAMPLES));
    group.gauge(MetricNames.PENDING_KEYS, timers::size);
    group.gauge(MetricNames.KEYS, () -> keys);
    group.gauge(MetricNames.ESTIMATED_REGRET, () -> Math.max(0, regret));
    group.gauge(MetricNames.MEAN_KEY_COST_MICROS, this::meanKeyCostMicros);
  }

  /**
   * Tells how much of a budget is used.
   *
   * @param nowNanos the budget's clock
   */
  void watch(ComputeBudget budget, LongSupplier nowNanos) {
    group.gauge(MetricNames.BUDGET_GRANTED, () -> budget.granted(nowNanos.getAsLong()));
    group.gauge(MetricNames.BUDGET_SPENT, budget::spent);
  }

  void keyAdded() {
    keys++;
  }

  /** A key's moving average of its computing time changed; NaN before was none. */
  void costChanged(double before, double after) {
    if (Double.isNaN(after)) {
      return;
    }
    if (Double.isNaN(before)) {
      keysWithCost++;
      costNanos += after;
    } else {
      costNanos += after - before;
    }
  }

  private double meanKeyCostMicros() {
    return keysWithCost == 0 ? 0 : Math.max(0, costNanos) / keysWithCost / NANOS_PER_MICRO;
  }

  /** A key's regret changed; 0 is none. */
  void regretChanged(double before, double after) {
    keysWithRegret += (after > 0 ? 1 : 0) - (before > 0 ? 1 : 0);
    // Else what rounding has left would be told as regret.
    regret = keysWithRegret == 0 ? 0 : regret + (after - before);
  }
}
