package dev.freshet.connectors.store;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import net.jqwik.api.Example;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import org.apache.flink.streaming.api.watermark.Watermark;
import org.apache.flink.streaming.runtime.watermarkstatus.WatermarkStatus;

/** A watermark never overtakes a write that came before it, and none is forgotten. */
final class WatermarkHoldTest {

  private final WatermarkHold hold = new WatermarkHold();
  private final List<Object> released = new ArrayList<>();

  private void release() {
    hold.release(watermark -> released.add(watermark.getTimestamp()), released::add);
  }

  @Example
  void theTimelineOfItsDescription() {
    WatermarkHold.Segment a = hold.accept();
    hold.hold(new Watermark(10));
    WatermarkHold.Segment b = hold.accept();
    hold.hold(new Watermark(20));
    WatermarkHold.settle(b);
    release();
    assertThat(released).isEmpty();
    WatermarkHold.settle(a);
    release();
    assertThat(released).containsExactly(10L, 20L);
  }

  @Example
  void statusKeepsItsPlace() {
    hold.hold(new Watermark(10));
    hold.hold(WatermarkStatus.IDLE);
    hold.hold(WatermarkStatus.ACTIVE);
    hold.hold(new Watermark(20));
    release();
    assertThat(released).containsExactly(10L, WatermarkStatus.IDLE, WatermarkStatus.ACTIVE, 20L);
  }

  @Example
  void settlingTwiceIsAFault() {
    WatermarkHold.Segment a = hold.accept();
    WatermarkHold.settle(a);
    assertThatThrownBy(() -> WatermarkHold.settle(a)).isInstanceOf(IllegalStateException.class);
  }

  @Example
  void doesNotGrowWhileTheStoreIsAway() {
    WatermarkHold.Segment write = hold.accept();
    for (int i = 0; i < 10_000; i++) {
      hold.hold(new Watermark(i));
    }
    assertThat(hold.size()).isLessThan(100);
    WatermarkHold.settle(write);
    release();
    assertThat(released).endsWith(9_999L);
  }

  @Property
  void noWatermarkOvertakesAWrite(@ForAll long seed) {
    Random random = new Random(seed);
    // One instance of the test serves every try.
    WatermarkHold hold = new WatermarkHold();
    List<Object> released = new ArrayList<>();
    Runnable release =
        () -> hold.release(watermark -> released.add(watermark.getTimestamp()), released::add);
    // Writes settle in random order; the model keeps what came before each watermark.
    List<WatermarkHold.Segment> open = new ArrayList<>();
    List<Long> openSince = new ArrayList<>();
    long clock = 0;
    for (int step = 0; step < 500; step++) {
      clock++;
      switch (random.nextInt(4)) {
        case 0, 1 -> {
          open.add(hold.accept());
          openSince.add(clock);
        }
        case 2 -> hold.hold(new Watermark(clock));
        default -> {
          if (!open.isEmpty()) {
            int index = random.nextInt(open.size());
            WatermarkHold.settle(open.remove(index));
            openSince.remove(index);
          }
        }
      }
      int before = released.size();
      release.run();
      long oldestOpen = openSince.stream().mapToLong(t -> t).min().orElse(Long.MAX_VALUE);
      assertThat(released.subList(before, released.size()))
          .allSatisfy(watermark -> assertThat((Long) watermark).isLessThan(oldestOpen));
    }
    hold.hold(new Watermark(clock + 1));
    open.forEach(WatermarkHold::settle);
    release.run();
    assertThat(released).endsWith(clock + 1);
    assertThat(released).isSortedAccordingTo((x, y) -> Long.compare((Long) x, (Long) y));
  }
}
