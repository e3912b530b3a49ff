package dev.freshet.operators.scheduling;

import dev.freshet.connectors.format.TableConfig;
import dev.freshet.connectors.record.ValueKind;
import dev.freshet.operators.compute.ComputeRequestEncoder;
import java.io.Serializable;

/**
 * What the {@link FeatureMaintenanceOperator} needs of a table's definition.
 *
 * @param table name of the table
 * @param origin id of this writer in versions, 0 to 65535
 * @param kind kind of the events' values
 * @param window how far the feature looks back
 * @param minPoints points that a window must hold before the function is called, at least 1
 * @param policy which key is next
 * @param onDemand whether a key is computed only when someone waits to read it
 * @param budget how much is computed, for the whole table
 * @param bundleTargetMs computing time that one batch aims for, milliseconds
 * @param bundleMaxKeys most keys in one batch
 * @param windowBytesMax largest encoded window that is computed; a larger one is a dead letter
 */
public record MaintenanceSettings(
    String table,
    int origin,
    ValueKind kind,
    WindowExtent window,
    int minPoints,
    SchedulingPolicy policy,
    boolean onDemand,
    BudgetSettings budget,
    long bundleTargetMs,
    int bundleMaxKeys,
    int windowBytesMax)
    implements Serializable {

  /**
   * The settings of a table.
   *
   * @throws IllegalArgumentException if the policy or the kind of budget is unknown, or the table
   *     lacks what the policy needs
   */
  public static MaintenanceSettings of(TableConfig table) {
    SchedulingPolicy policy =
        SchedulingPolicies.create(
            table.policy(),
            new RegretSettings(table.defaultRegret(), table.maxRegret(), table.missingRegret()),
            table.policySeed());
    SchedulingPolicies.check(policy, table.keepVersions());
    return new MaintenanceSettings(
        table.table(),
        table.origin(),
        table.source().valueKind(),
        extent(table.window()),
        table.minPoints(),
        policy,
        table.onDemand() != null,
        budget(table.budget()),
        table.bundleTargetMs(),
        table.bundleMaxKeys(),
        ComputeRequestEncoder.WINDOW_BYTES_MAX);
  }

  private static WindowExtent extent(TableConfig.Window window) {
    return window.points() != null
        ? WindowExtent.ofPoints(window.points())
        : WindowExtent.ofDuration(window.durationMs());
  }

  private static BudgetSettings budget(TableConfig.Budget budget) {
    return switch (budget.kind()) {
      case TableConfig.Budget.TIME_SHARE -> new BudgetSettings.TimeShare(budget.share());
      case TableConfig.Budget.RATE ->
          budget.burst() == null
              ? new BudgetSettings.Rate(budget.updatesPerSecond())
              : new BudgetSettings.Rate(budget.updatesPerSecond(), budget.burst());
      case TableConfig.Budget.EVENT_TIME_STEP ->
          new BudgetSettings.EventTimeStep(
              budget.updatesPerStep(), budget.stepMs(), budget.initialUpdates());
      default ->
          throw new IllegalArgumentException("budget kind '" + budget.kind() + "' is unknown");
    };
  }
}
