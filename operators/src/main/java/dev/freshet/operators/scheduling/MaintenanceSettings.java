package dev.freshet.operators.scheduling;

import dev.freshet.connectors.record.ValueKind;
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
 * @param budget how much is computed, for the whole table
 * @param bundleTargetMs computing time that one batch aims for, milliseconds
 * @param bundleMaxKeys most keys in one batch
 */
public record MaintenanceSettings(
    String table,
    int origin,
    ValueKind kind,
    WindowExtent window,
    int minPoints,
    SchedulingPolicy policy,
    BudgetSettings budget,
    long bundleTargetMs,
    int bundleMaxKeys)
    implements Serializable {}
