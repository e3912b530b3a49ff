package dev.freshet.connectors.chunk;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.BitSet;
import java.util.List;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;

/** Goal: ranges are the sets of offsets that they stand for. Method: beside a set of bits. */
class OffsetRangesTest {

  private static final int OFFSETS = 40;

  private record Step(int kind, int after, int upto) {}

  @Property
  void rangesAreSets(@ForAll("steps") List<Step> steps, @ForAll("steps") List<Step> others) {
    OffsetRanges ranges = new OffsetRanges();
    BitSet bits = new BitSet();
    steps.forEach(step -> take(step, ranges, bits));
    OffsetRanges otherRanges = new OffsetRanges();
    BitSet otherBits = new BitSet();
    others.forEach(step -> take(step, otherRanges, otherBits));
    assertSame(ranges, bits);

    BitSet both = (BitSet) bits.clone();
    both.and(otherBits);
    assertSame(ranges.intersection(otherRanges), both);

    OffsetRanges without = ranges.copy();
    without.removeAll(otherRanges);
    BitSet bitsWithout = (BitSet) bits.clone();
    bitsWithout.andNot(otherBits);
    assertSame(without, bitsWithout);

    OffsetRanges all = ranges.copy();
    all.addAll(otherRanges);
    BitSet allBits = (BitSet) bits.clone();
    allBits.or(otherBits);
    assertSame(all, allBits);
    assertThat(OffsetRanges.fromList(all.toList())).isEqualTo(all);
  }

  private static void take(Step step, OffsetRanges ranges, BitSet bits) {
    int after = Math.min(step.after(), step.upto());
    int upto = Math.max(step.after(), step.upto());
    if (step.kind() == 0) {
      ranges.remove(after, upto);
      bits.clear(after + 1, upto + 1);
    } else if (step.kind() == 1) {
      OffsetRanges taken = ranges.takeUpto(upto);
      BitSet takenBits = (BitSet) bits.clone();
      takenBits.clear(upto + 1, OFFSETS + 2);
      assertSame(taken, takenBits);
      bits.clear(0, upto + 1);
    } else {
      ranges.add(after, upto);
      bits.set(after + 1, upto + 1);
    }
  }

  private static void assertSame(OffsetRanges ranges, BitSet bits) {
    for (int offset = 0; offset <= OFFSETS; offset++) {
      assertThat(ranges.contains(offset - 1, offset))
          .as("%d of %s", offset, ranges)
          .isEqualTo(bits.get(offset));
    }
    for (int i = 1; i < ranges.count(); i++) {
      assertThat(ranges.after(i)).isGreaterThan(ranges.upto(i - 1));
    }
    assertThat(ranges.prefix()).isEqualTo(bits.nextClearBit(0) - 1L);
    assertThat(ranges.isEmpty()).isEqualTo(bits.isEmpty());
  }

  @Provide
  Arbitrary<List<Step>> steps() {
    Arbitrary<Integer> offsets = Arbitraries.integers().between(-1, OFFSETS - 1);
    return Combinators.combine(Arbitraries.integers().between(0, 6), offsets, offsets)
        .as(Step::new)
        .list()
        .ofMaxSize(12);
  }
}
