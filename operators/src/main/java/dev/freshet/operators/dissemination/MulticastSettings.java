package dev.freshet.operators.dissemination;

import com.fasterxml.jackson.annotation.JsonProperty;
import dev.freshet.connectors.format.ConfigJson;
import dev.freshet.connectors.format.Problems;
import java.io.Serializable;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * What the multicast job disseminates, and how.
 *
 * @param home region that the changes are from
 * @param tables to disseminate
 * @param lanes number of partitions of the inboxes that chunks are dealt to
 * @param earlyShare of a table's changes that may go out of turn while a link is behind, 0 to 1
 * @param reportIntervalMs between two reports
 * @param catchUpAfterMs how long a region may lack what nobody has for it, before it is sent again
 * @param cacheBytes size of all recent changes that are kept for catch-up
 */
record MulticastSettings(
    String home,
    List<Table> tables,
    int lanes,
    double earlyShare,
    long reportIntervalMs,
    long catchUpAfterMs,
    long cacheBytes)
    implements Serializable {

  private static final long serialVersionUID = 1L;

  /**
   * A table to disseminate.
   *
   * @param table its name
   * @param topic its changes topic
   * @param log id of that topic
   * @param shards partitions of that topic
   * @param sloMs from {@code computed_at} to readable in every region
   * @param weight beside other tables
   */
  record Table(
      String table,
      String topic,
      String log,
      int shards,
      @JsonProperty("slo_ms") long sloMs,
      double weight)
      implements Serializable {
    private static final long serialVersionUID = 1L;
  }

  /**
   * Parses and checks the JSON.
   *
   * @throws IllegalArgumentException naming every field that is missing or out of range
   */
  static MulticastSettings parse(String json) {
    MulticastSettings settings =
        ConfigJson.read("the multicast job's settings", json, MulticastSettings.class);
    settings.sanityCheck();
    return settings;
  }

  private void sanityCheck() {
    Problems problems = new Problems("the multicast job's settings");
    problems.requireText(home, "home");
    problems.require(
        tables != null && !tables.isEmpty(), "tables is empty; name a table to disseminate");
    problems.requireAtLeast(lanes, 1, "lanes");
    problems.require(earlyShare >= 0 && earlyShare <= 1, "early_share must be between 0 and 1");
    problems.requireAtLeast(reportIntervalMs, 1, "report_interval_ms");
    problems.requireAtLeast(catchUpAfterMs, 1, "catch_up_after_ms");
    problems.requireAtLeast(cacheBytes, 0, "cache_bytes");
    for (Table table : tables == null ? List.<Table>of() : tables) {
      problems.requireText(table.table, "tables[].table");
      problems.requireText(table.topic, "tables[].topic of " + table.table);
      problems.requireText(table.log, "tables[].log of " + table.table);
      problems.requireAtLeast(table.shards, 1, "tables[].shards of " + table.table);
      problems.requireAtLeast(table.sloMs, 0, "tables[].slo_ms of " + table.table);
      problems.require(table.weight > 0, "tables[].weight of " + table.table + " must be positive");
    }
    problems.check();
  }

  /** The table that each changes topic is of. */
  Map<String, Table> byTopic() {
    Map<String, Table> byTopic = new HashMap<>();
    tables.forEach(table -> byTopic.put(table.topic(), table));
    return byTopic;
  }
}
