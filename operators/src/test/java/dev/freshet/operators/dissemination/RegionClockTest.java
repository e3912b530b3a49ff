package dev.freshet.operators.dissemination;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;

/** Goal: clocks minutes apart are told to half of the shortest round trip, also under jitter. */
class RegionClockTest {

  private static final long FIVE_MINUTES = 300_000_000;

  @Test
  void clocksFiveMinutesApartAreTold() {
    SplittableRandom random = new SplittableRandom(3);
    RegionClock clock = new RegionClock();
    assertThat(clock.isKnown()).isFalse();
    for (int i = 0; i < 100; i++) {
      long sent = 1_000_000L * i;
      long there = 20_000 + random.nextInt(80_000);
      long held = random.nextInt(1_000_000);
      long back = 25_000 + random.nextInt(80_000);
      long received = sent + there + FIVE_MINUTES;
      clock.exchanged(sent, received, received + held, sent + there + held + back);
    }
    assertThat(clock.aheadMicros()).isBetween(FIVE_MINUTES - 50_000, FIVE_MINUTES + 50_000);
  }

  @Test
  void aClockThatWasSetIsNoExchange() {
    RegionClock clock = new RegionClock();
    clock.exchanged(1_000, 2_000, 500_000_000, 3_000);
    assertThat(clock.isKnown()).isFalse();
  }

  @Test
  void driftIsFollowed() {
    RegionClock clock = new RegionClock();
    clock.exchanged(0, 1_000, 1_000, 2_000);
    assertThat(clock.aheadMicros()).isZero();
    long later = 300_000_000;
    clock.exchanged(later, later + 60_000, later + 60_000, later + 20_000);
    assertThat(clock.aheadMicros()).isEqualTo(50_000);
  }
}
