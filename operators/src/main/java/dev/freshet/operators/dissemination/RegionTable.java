package dev.freshet.operators.dissemination;

import dev.freshet.connectors.chunk.ChunkHeader;
import dev.freshet.connectors.chunk.KeyChange;
import dev.freshet.connectors.metrics.MetricNames;
import dev.freshet.connectors.store.StoreAnswer;
import dev.freshet.schemas.Echo;
import dev.freshet.schemas.Purpose;
import dev.freshet.schemas.RegionReport;
import org.apache.flink.metrics.Counter;
import org.apache.flink.metrics.Histogram;
import org.apache.flink.metrics.MetricGroup;
import org.apache.flink.runtime.metrics.DescriptiveStatisticsHistogram;

/** What one subtask has counted and measured of one table. */
final class RegionTable {

  /** Recent values that a histogram describes. */
  private static final int HISTOGRAM_WINDOW = 2_000;

  private static final long MICROS_PER_MS = 1_000;

  private final String name;
  private final long sloMs;
  private final LagSketch freshness = new LagSketch();
  private final LagSketch delay = new LagSketch();
  private final Counter changesApplied;
  private final Counter changesCaughtUp;
  private final Counter changesSuperseded;
  private final Counter changesSkipped;
  private final Counter sloViolations;
  private final Counter deadLetters;
  private final Histogram freshnessMs;
  private final Histogram delayMs;
  private long applied;
  private long caughtUp;
  private long superseded;
  private long late;
  private Echo echo;
  private Echo slowest;

  /**
   * @param sloMs of its changes; 0 if it is not known
   * @param operator metrics of ours
   */
  RegionTable(String name, long sloMs, MetricGroup operator) {
    this.name = name;
    this.sloMs = sloMs;
    MetricGroup group = operator.addGroup(MetricNames.TABLE, name);
    changesApplied = group.counter(MetricNames.CHANGES_APPLIED);
    changesCaughtUp = group.counter(MetricNames.CHANGES_CAUGHT_UP);
    changesSuperseded = group.counter(MetricNames.CHANGES_SUPERSEDED);
    changesSkipped = group.counter(MetricNames.CHANGES_SKIPPED);
    sloViolations = group.counter(MetricNames.SLO_VIOLATIONS);
    deadLetters = group.counter(MetricNames.DEAD_LETTERS);
    group.gauge(MetricNames.SLO_MS, () -> sloMs);
    freshnessMs = histogram(group, MetricNames.FRESHNESS_MS);
    delayMs = histogram(group, MetricNames.DELAY_MS);
  }

  private static Histogram histogram(MetricGroup group, String name) {
    return group.histogram(name, new DescriptiveStatisticsHistogram(HISTOGRAM_WINDOW));
  }

  String name() {
    return name;
  }

  /**
   * The store has answered a change.
   *
   * @param nowMicros this region's clock
   */
  void answered(ChunkHeader chunk, KeyChange change, StoreAnswer answer, long nowMicros) {
    switch (answer) {
      case WRITTEN -> {
        if (chunk.purpose() == Purpose.CATCH_UP) {
          caughtUp++;
          changesCaughtUp.inc();
        } else {
          applied++;
          changesApplied.inc();
          measure(chunk, change, nowMicros);
        }
      }
      case KEPT_AS_OLDER, DUPLICATE, STALE -> superseded();
      // The operator's dead letter tells.
      case FOREIGN -> deadLetters.inc();
    }
  }

  /** A newer change was or is in the store in place of one. */
  void superseded() {
    superseded++;
    changesSuperseded.inc();
  }

  private void measure(ChunkHeader chunk, KeyChange change, long nowMicros) {
    long homeMs = homeMicros(chunk, nowMicros) / MICROS_PER_MS;
    freshness.add(homeMs - change.eventTimeMs());
    delay.add(homeMs - change.computedAtMs());
    freshnessMs.update(homeMs - change.eventTimeMs());
    delayMs.update(homeMs - change.computedAtMs());
    // A chunk is due when the oldest of its changes is.
    if (homeMs > (sloMs > 0 ? change.computedAtMs() + sloMs : chunk.deadlineMs())) {
      late++;
      sloViolations.inc();
    }
  }

  /** The time in home's clock, as far as that is known. */
  private static long homeMicros(ChunkHeader chunk, long nowMicros) {
    Long ahead = chunk.clockAheadMicros();
    return ahead == null ? nowMicros : nowMicros - ahead;
  }

  /** The store has all of a chunk. */
  void complete(ChunkHeader chunk, long receivedAtMicros, long nowMicros) {
    if (chunk.purpose() == Purpose.LIVE) {
      echo = new Echo(chunk.sentAtMicros(), receivedAtMicros, nowMicros);
      if (slowest == null || took(echo) > took(slowest)) {
        slowest = echo;
      }
    }
  }

  /** By two clocks: only to compare. */
  private static long took(Echo echo) {
    return echo.getAppliedAtMicros() - echo.getSentAtMicros();
  }

  /** Changes were not given to the store, which does not answer. */
  void skipped(int changes) {
    changesSkipped.inc(changes);
  }

  /** Enters what was counted, and measured since the last time. */
  RegionReport.Builder report(RegionReport.Builder report) {
    counters(report)
        .setEcho(echo)
        .setSlowest(slowest)
        .setFreshness(freshness.take())
        .setDelay(delay.take());
    echo = null;
    slowest = null;
    return report;
  }

  /** Enters what was counted since the job's first start. */
  RegionReport.Builder counters(RegionReport.Builder report) {
    return report
        .setTable(name)
        .setApplied(applied)
        .setCaughtUp(caughtUp)
        .setSuperseded(superseded)
        .setLate(late);
  }

  /** Goes on from what an earlier run has counted. */
  void restore(RegionReport counted) {
    applied += counted.getApplied();
    caughtUp += counted.getCaughtUp();
    superseded += counted.getSuperseded();
    late += counted.getLate();
  }
}
