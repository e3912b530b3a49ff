package dev.freshet.operators.dissemination;

import com.fasterxml.jackson.annotation.JsonProperty;
import dev.freshet.connectors.format.ConfigJson;
import dev.freshet.connectors.format.Problems;
import dev.freshet.connectors.format.TableConfig;
import dev.freshet.connectors.store.RegionStore;
import java.io.Serializable;
import java.util.List;

/**
 * What a region's job keeps and sends on, and how.
 *
 * @param region that it runs in, {@code provider:region}
 * @param applies whether the region keeps tables; a waypoint only sends on
 * @param tables that it reports of from the start, so that it gets them; others join when they come
 * @param reportIntervalMs between two reports; 1,000 if absent
 * @param relayRetentionMs how long a link may be silent before what waits for it is given up, for
 *     home to send when it is needed; 60,000 if absent
 * @param storeSilentMs how long the store may owe answers before chunks are only sent on; 5,000 if
 *     absent
 * @param earlyShare of a table's changes that may go out of turn while a link is behind, 0 to 1; 0
 *     if absent
 * @param clockAheadMs what the region's clock is taken to be ahead of the machine's, so that clocks
 *     that are apart can be tested; may be negative; 0 if absent
 */
record RegionSettings(
    String region,
    boolean applies,
    List<Table> tables,
    long reportIntervalMs,
    long relayRetentionMs,
    long storeSilentMs,
    double earlyShare,
    long clockAheadMs)
    implements Serializable {

  private static final long serialVersionUID = 1L;

  private static final long DEFAULT_REPORT_INTERVAL_MS = 1_000;
  private static final long DEFAULT_RELAY_RETENTION_MS = 60_000;

  /** Longer than a store's failover or restart takes. */
  private static final long DEFAULT_STORE_SILENT_MS = 5_000;

  /**
   * A table that is known.
   *
   * @param table its name
   * @param keepVersions versions of a value that the online store keeps; 1 if absent
   * @param sloMs from {@code computed_at} to readable; 0 if it is not known, and the deadline of a
   *     chunk then counts for each change in it
   * @param definition the table in JSON, as clients find it in the store; null if it is not known
   */
  record Table(
      String table, int keepVersions, @JsonProperty("slo_ms") long sloMs, String definition)
      implements Serializable {

    private static final long serialVersionUID = 1L;

    Table {
      keepVersions = keepVersions == 0 ? 1 : keepVersions;
    }

    RegionStore.Table inStore() {
      return new RegionStore.Table(table, keepVersions, definition);
    }
  }

  RegionSettings {
    tables = tables == null ? List.of() : tables;
    reportIntervalMs = reportIntervalMs == 0 ? DEFAULT_REPORT_INTERVAL_MS : reportIntervalMs;
    relayRetentionMs = relayRetentionMs == 0 ? DEFAULT_RELAY_RETENTION_MS : relayRetentionMs;
    storeSilentMs = storeSilentMs == 0 ? DEFAULT_STORE_SILENT_MS : storeSilentMs;
  }

  /** The SLO of a table, ms; 0 if it is not known. */
  long sloMs(String table) {
    return tables.stream()
        .filter(known -> known.table().equals(table))
        .mapToLong(Table::sloMs)
        .findFirst()
        .orElse(0);
  }

  /**
   * Parses and checks the JSON.
   *
   * @throws IllegalArgumentException naming every field that is missing or out of range
   */
  static RegionSettings parse(String json) {
    RegionSettings settings =
        ConfigJson.read("the region job's settings", json, RegionSettings.class);
    settings.sanityCheck();
    return settings;
  }

  private void sanityCheck() {
    Problems problems = new Problems("the region job's settings");
    problems.requireText(region, "region");
    problems.requireAtLeast(reportIntervalMs, 1, "report_interval_ms");
    problems.requireAtLeast(relayRetentionMs, 1, "relay_retention_ms");
    problems.requireAtLeast(storeSilentMs, 1, "store_silent_ms");
    problems.require(
        earlyShare >= 0 && earlyShare <= 1,
        "early_share is " + earlyShare + "; it must be between 0 and 1");
    for (Table table : tables) {
      problems.requireText(table.table, "tables[].table");
      problems.require(
          table.keepVersions >= 1 && table.keepVersions <= TableConfig.MAX_KEEP_VERSIONS,
          "tables[].keep_versions of "
              + table.table
              + " is "
              + table.keepVersions
              + "; it must be 1 to "
              + TableConfig.MAX_KEEP_VERSIONS);
    }
    problems.check();
  }
}
