package dev.freshet.operators.dissemination;

import dev.freshet.connectors.chunk.OffsetRanges;
import dev.freshet.schemas.Echo;
import dev.freshet.schemas.LinkReport;
import dev.freshet.schemas.RegionReport;
import dev.freshet.schemas.ShardKnowledge;
import java.util.ArrayDeque;
import java.util.HashMap;
import java.util.Map;
import java.util.Queue;
import java.util.function.Consumer;

/** What home knows of one other region from its reports. */
final class RemoteRegion {

  /** Prediction of a way on which nothing was measured yet. */
  private static final double UNKNOWN_DELAY_MS = 50;

  private static final double MICROS_PER_MS = 1_000;

  /** Of one table. */
  private static final class TableReports {
    final Map<Integer, RegionReport> bySubtask = new HashMap<>();
    final Map<Integer, MissingRanges> missing = new HashMap<>();
    final Map<Integer, MissingRanges> missingForLong = new HashMap<>();
    final Map<Integer, OffsetRanges> fetching = new HashMap<>();
    RegionLag lag;
    long gapFilledAtMs;
  }

  private final String name;
  private final RegionClock clock = new RegionClock();
  private final DelayEstimate delay = new DelayEstimate(UNKNOWN_DELAY_MS);
  private final Map<String, TableReports> tables = new HashMap<>();
  private final Queue<Runnable> fetched = new ArrayDeque<>();
  private long heardAtMs = Long.MIN_VALUE;

  RemoteRegion(String name) {
    this.name = name;
  }

  String name() {
    return name;
  }

  RegionClock clock() {
    return clock;
  }

  /** Predicted time from sending at home to readable there, ms. */
  long predictedDelayMs() {
    return (long) Math.ceil(delay.predictedMs());
  }

  /** When it last reported, ms of home's clock. */
  long heardAtMs() {
    return heardAtMs;
  }

  /** Takes a report in. */
  void report(RegionReport report, long nowMicros) {
    heardAtMs = nowMicros / 1_000;
    TableReports table = table(report.getTable());
    RegionReport before = table.bySubtask.put(report.getSubtask(), report);
    if (before != null && before.getEpoch() != report.getEpoch()) {
      // It has lost its store. The other subtasks will find that out themselves.
      table.missing.clear();
      table.missingForLong.clear();
    }
    table.bySubtask.keySet().removeIf(subtask -> subtask >= report.getParallelism());
    Echo echo = report.getEcho();
    if (echo != null) {
      clock.exchanged(
          echo.getSentAtMicros(),
          echo.getReceivedAtMicros(),
          report.getReportedAtMicros(),
          nowMicros);
      Echo slowest = report.getSlowest() == null ? echo : report.getSlowest();
      double tookMicros =
          slowest.getAppliedAtMicros() - clock.aheadMicros() - slowest.getSentAtMicros();
      delay.measured(Math.max(0, tookMicros / MICROS_PER_MS), heardAtMs);
    }
  }

  private TableReports table(String name) {
    return tables.computeIfAbsent(name, key -> new TableReports());
  }

  /** Whether it has reported of a table since it last lost data. */
  boolean reports(String table) {
    return !table(table).bySubtask.isEmpty();
  }

  /** What its store has of a shard. */
  OffsetRanges known(String table, String log, int shard) {
    OffsetRanges known = new OffsetRanges();
    for (RegionReport report : table(table).bySubtask.values()) {
      for (ShardKnowledge knowledge : report.getKnowledge()) {
        if (knowledge.getShard() == shard && knowledge.getLog().equals(log)) {
          known.addAll(OffsetRanges.fromList(knowledge.getRanges()));
        }
      }
    }
    return known;
  }

  /**
   * For how long it has not had all of a table.
   *
   * @param started called the first time, with what this returns from then on
   */
  RegionLag lag(String table, Consumer<RegionLag> started) {
    TableReports reports = table(table);
    if (reports.lag == null) {
      reports.lag = new RegionLag();
      started.accept(reports.lag);
    }
    return reports.lag;
  }

  /** What it lacks of a shard, watched. */
  MissingRanges missing(String table, int shard) {
    return table(table).missing.computeIfAbsent(shard, key -> new MissingRanges());
  }

  /** The same, whether or not a relay may have it. */
  MissingRanges missingForLong(String table, int shard) {
    return table(table).missingForLong.computeIfAbsent(shard, key -> new MissingRanges());
  }

  /** A part of what it lacked, before something that it knew, has come to it. */
  void gapFilled(String table, long nowMs) {
    table(table).gapFilledAtMs = nowMs;
  }

  /** When that was the last time, ms of home's clock; 0 if never. */
  long gapFilledAtMs(String table) {
    return table(table).gapFilledAtMs;
  }

  /** What is being fetched for it of a shard, and in no backlog yet. */
  OffsetRanges fetching(String table, int shard) {
    return table(table).fetching.computeIfAbsent(shard, key -> new OffsetRanges());
  }

  /** Steps of sending what was fetched for it, one after the other when there is room. */
  Queue<Runnable> fetched() {
    return fetched;
  }

  /**
   * Whether it has a backlog on its link to another region. Whatever is in it is not lost, whether
   * or not it is due, so its size decides and not whether the link is behind.
   */
  boolean holdsBackFor(String next) {
    for (TableReports reports : tables.values()) {
      for (RegionReport report : reports.bySubtask.values()) {
        for (LinkReport link : report.getLinks()) {
          if (link.getTo().equals(next) && link.getBacklogKeys() > 0) {
            return true;
          }
        }
      }
    }
    return false;
  }
}
