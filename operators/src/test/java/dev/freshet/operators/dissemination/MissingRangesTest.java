package dev.freshet.operators.dissemination;

import static org.assertj.core.api.Assertions.assertThat;

import dev.freshet.connectors.chunk.OffsetRanges;
import org.junit.jupiter.api.Test;

/** What a region lacks for a while is lost, unless what it lacked before is just arriving. */
class MissingRangesTest {

  private static final long PATIENCE_MS = 2_000;

  private final MissingRanges missing = new MissingRanges();
  private final OffsetRanges known = OffsetRanges.of(99, 120);

  @Test
  void whatLacksBeforeSomethingKnownIsLostAfterTwoLooks() {
    OffsetRanges gap = OffsetRanges.of(-1, 99);
    assertThat(lost(gap, false, 0)).isEqualTo(new OffsetRanges());
    assertThat(lost(gap, false, PATIENCE_MS - 1)).isEqualTo(new OffsetRanges());
    assertThat(lost(OffsetRanges.of(9, 130), false, PATIENCE_MS)).isEqualTo(OffsetRanges.of(9, 99));
  }

  @Test
  void nothingIsLostWhileGapsAreFilled() {
    OffsetRanges gap = OffsetRanges.of(-1, 99);
    assertThat(lost(gap, false, 0)).isEqualTo(new OffsetRanges());
    assertThat(lost(gap, true, PATIENCE_MS)).isEqualTo(new OffsetRanges());
    assertThat(lost(gap, false, 2 * PATIENCE_MS)).isEqualTo(gap);
  }

  @Test
  void gapsThatAreFilledForEverHideNoLoss() {
    OffsetRanges gap = OffsetRanges.of(-1, 99);
    int looks = 0;
    while (lost(gap, true, looks * PATIENCE_MS).isEmpty()) {
      assertThat(++looks).isLessThanOrEqualTo(MissingRanges.DEFERRALS_MAX);
    }
    assertThat(looks).isEqualTo(MissingRanges.DEFERRALS_MAX);
  }

  @Test
  void aGapIsFillingOnlyByWhatComesBeforeTheEnd() {
    assertThat(missing.isFilling(OffsetRanges.of(-1, 99), known)).isFalse();
    assertThat(missing.isFilling(OffsetRanges.of(-1, 99), known)).isFalse();
    assertThat(missing.isFilling(OffsetRanges.of(9, 99), known)).isTrue();
    // What is behind all that it knows comes in the course of time.
    OffsetRanges behind = OffsetRanges.of(9, 99);
    behind.add(120, 140);
    assertThat(missing.isFilling(behind, known)).isFalse();
    assertThat(missing.isFilling(OffsetRanges.of(9, 99), OffsetRanges.of(99, 140))).isFalse();
  }

  private OffsetRanges lost(OffsetRanges lacking, boolean mayArrive, long nowMs) {
    return missing.lost(lacking, known, mayArrive, nowMs, PATIENCE_MS);
  }
}
