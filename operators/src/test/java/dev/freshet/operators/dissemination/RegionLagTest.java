package dev.freshet.operators.dissemination;

import static org.assertj.core.api.Assertions.assertThat;

import dev.freshet.connectors.chunk.OffsetRanges;
import org.junit.jupiter.api.Test;

/** A region is behind since it last had all that home had read, however much comes meanwhile. */
class RegionLagTest {

  private static final long START_MS = 1_000_000;

  private final RegionLag lag = new RegionLag();

  private void reported(int shard, long atMs, long head, OffsetRanges known) {
    lag.reported(shard, known, head, START_MS + atMs);
  }

  private long behindMs(long atMs) {
    return lag.behindMs(START_MS + atMs);
  }

  @Test
  void aRegionThatFollowsIsBehindByItsReports() {
    assertThat(behindMs(0)).isZero();
    for (int second = 0; second <= 10; second++) {
      reported(0, second * 1_000L, 10L * (second + 1), OffsetRanges.of(-1, 10L * second));
    }
    assertThat(behindMs(10_000)).isEqualTo(1_000);
  }

  @Test
  void whatIsMissingCountsHoweverMuchComesBehindIt() {
    reported(0, 0, 9, new OffsetRanges());
    OffsetRanges holed = OffsetRanges.of(-1, 5);
    holed.add(6, 500);
    reported(0, 60_000, 500, holed);
    assertThat(behindMs(60_000)).isEqualTo(60_000);
    reported(0, 61_000, 510, OffsetRanges.of(-1, 510));
    assertThat(behindMs(61_000)).isEqualTo(61_000);
    // All that there was at 61 s is there.
    reported(0, 62_000, 520, OffsetRanges.of(-1, 512));
    assertThat(behindMs(62_000)).isEqualTo(1_000);
  }

  @Test
  void theWorstShardCountsAndAnEmptyOneLacksNothing() {
    reported(0, 0, 9, OffsetRanges.of(-1, 9));
    reported(1, 0, -1, new OffsetRanges());
    reported(0, 5_000, 9, OffsetRanges.of(-1, 8));
    reported(1, 5_000, -1, new OffsetRanges());
    assertThat(behindMs(5_000)).isEqualTo(5_000);
  }

  @Test
  void aSilentRegionIsMoreAndMoreBehind() {
    reported(0, 0, 9, OffsetRanges.of(-1, 9));
    assertThat(behindMs(700_000)).isEqualTo(700_000);
  }
}
