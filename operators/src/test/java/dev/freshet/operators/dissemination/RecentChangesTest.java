package dev.freshet.operators.dissemination;

import static org.assertj.core.api.Assertions.assertThat;

import dev.freshet.connectors.chunk.ChunkEntry;
import dev.freshet.connectors.chunk.KeyChange;
import dev.freshet.connectors.chunk.OffsetRanges;
import org.junit.jupiter.api.Test;

/** Goal: what the cache answers for a range has of each key what the range has, or newer. */
class RecentChangesTest {

  private final RecentChanges recent = new RecentChanges(0, 9, 1_000_000);

  @Test
  void aKeyStandsWhereItChangedLast() {
    add(10, "k", 1);
    add(11, "l", 2);
    add(12, "k", 3);
    assertThat(recent.in(OffsetRanges.of(9, 11)))
        .extracting(entry -> entry.change().key())
        .containsExactly("l");
    assertThat(recent.in(OffsetRanges.of(11, 12)))
        .extracting(ChunkEntry::offset)
        .containsExactly(12L);
  }

  @Test
  void anOlderVersionThatComesLaterTakesNoNewerOnesPlace() {
    add(10, "k", 7);
    add(11, "k", 5);
    assertThat(recent.in(OffsetRanges.of(10, 11)))
        .singleElement()
        .satisfies(
            entry -> {
              assertThat(entry.offset()).isEqualTo(11);
              assertThat(entry.change().version().timestampMicros()).isEqualTo(7);
            });
  }

  @Test
  void whatIsTooMuchIsForgottenFromTheBeginning() {
    RecentChanges small = new RecentChanges(0, 9, 3 * BacklogEntry.OVERHEAD_BYTES);
    for (int offset = 10; offset < 20; offset++) {
      KeyChange change = RegionHarness.upsert(0, offset, "k" + offset, offset).change();
      small.add(change, offset);
    }
    assertThat(small.reachesBackTo(OffsetRanges.of(9, 19))).isFalse();
    assertThat(small.reachesBackTo(OffsetRanges.of(18, 19))).isTrue();
    assertThat(small.in(OffsetRanges.of(18, 19))).hasSize(1);
  }

  private void add(long offset, String key, long version) {
    recent.add(RegionHarness.upsert(0, offset, key, version).change(), offset);
  }
}
