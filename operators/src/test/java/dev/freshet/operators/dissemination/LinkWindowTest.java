package dev.freshet.operators.dissemination;

import static org.assertj.core.api.Assertions.assertThat;

import dev.freshet.schemas.Purpose;
import java.util.ArrayDeque;
import org.junit.jupiter.api.Test;

/** Goal: a window fits its link. Method: a simulated link with a rate and a round trip. */
class LinkWindowTest {

  private static final long MS = 1_000_000;

  /** A link that serves one chunk after the other. */
  private static final class SimulatedLink {
    private record Chunk(long bytes, Purpose purpose, long sentNanos, long doneNanos) {}

    double bytesPerSecond;
    private final long roundTripNanos;
    private final ArrayDeque<Chunk> chunks = new ArrayDeque<>();
    private long freeAt;
    private long now = 1_000 * MS;
    long delivered;
    long longestNanos;
    long longestLiveNanos;
    long deliveredOfCatchUp;
    private long nextLiveNanos;
    boolean isBehind;

    SimulatedLink(double bytesPerSecond, long roundTripMs) {
      this.bytesPerSecond = bytesPerSecond;
      this.roundTripNanos = roundTripMs * MS;
    }

    /** Sends as much as the window allows, for so long. */
    void run(LinkWindow window, long durationMs) {
      run(window, durationMs, () -> sendAll(window));
    }

    private void run(LinkWindow window, long durationMs, Runnable send) {
      long end = now + durationMs * MS;
      delivered = 0;
      longestNanos = 0;
      longestLiveNanos = 0;
      deliveredOfCatchUp = 0;
      while (now < end) {
        send.run();
        acknowledge(window);
      }
    }

    private void sendAll(LinkWindow window) {
      while (window.hasRoom()) {
        send(window, window.chunkBytesMax(), Purpose.LIVE);
      }
    }

    /** The same of catch-up, and a live chunk of so many bytes every 50 ms. */
    void catchUp(LinkWindow window, long durationMs, long liveBytes) {
      run(
          window,
          durationMs,
          () -> {
            if (now >= nextLiveNanos && window.hasRoom()) {
              nextLiveNanos = now + 50 * MS;
              send(window, liveBytes, Purpose.LIVE);
            }
            while (window.hasRoomForCatchUp()) {
              send(window, window.catchUpChunkBytesMax(), Purpose.CATCH_UP);
            }
          });
    }

    private void send(LinkWindow window, long bytes, Purpose purpose) {
      freeAt = Math.max(freeAt, now) + (long) (bytes / bytesPerSecond * 1e9);
      chunks.add(new Chunk(bytes, purpose, now, freeAt + roundTripNanos));
      window.sent(bytes, purpose, now);
    }

    /** Lets everything arrive. */
    void finish(LinkWindow window) {
      while (!chunks.isEmpty()) {
        acknowledge(window);
      }
    }

    private void acknowledge(LinkWindow window) {
      Chunk first = chunks.removeFirst();
      now = Math.max(now, first.doneNanos());
      delivered += first.bytes();
      longestNanos = Math.max(longestNanos, now - first.sentNanos());
      if (first.purpose() == Purpose.LIVE) {
        longestLiveNanos = Math.max(longestLiveNanos, now - first.sentNanos());
      } else {
        deliveredOfCatchUp += first.bytes();
      }
      window.acknowledged(first.bytes(), first.purpose(), first.sentNanos(), now, isBehind);
    }
  }

  @Test
  void aLongFastLinkIsFilled() {
    SimulatedLink link = new SimulatedLink(50e6, 100);
    LinkWindow window = new LinkWindow();
    link.run(window, 20_000);
    link.run(window, 10_000);
    assertThat(link.delivered / 10.0).isGreaterThan(0.8 * 50e6);
    assertThat(window.bytesPerSecond()).isBetween(0.5 * 50e6, 1.5 * 50e6);
    assertThat(window.roundTripMs()).isBetween(100.0, 200.0);
  }

  @Test
  void onASlowLinkLittleIsUnderWay() {
    SimulatedLink link = new SimulatedLink(125e3, 20);
    LinkWindow window = new LinkWindow();
    link.run(window, 30_000);
    link.run(window, 30_000);
    assertThat(link.delivered / 30.0).isGreaterThan(0.8 * 125e3);
    // What is sent now is there within a second, though 1 Mbit/s take 0.13 s for the least chunks.
    assertThat(link.longestNanos).isLessThan(1_000 * MS);
  }

  @Test
  void aLinkThatBecomesSlowHoldsLittleWithinSeconds() {
    SimulatedLink link = new SimulatedLink(5e6, 200);
    LinkWindow window = new LinkWindow();
    link.run(window, 20_000);
    link.bytesPerSecond /= 12;
    link.run(window, 5_000);
    link.run(window, 20_000);
    assertThat(link.delivered / 20.0).isGreaterThan(0.8 * 5e6 / 12);
    // A few round trips, while the window probes for more.
    assertThat(link.longestNanos).isLessThan(1_200 * MS);
  }

  @Test
  void whileItIsBehindTheQueueIsShortAndTheLinkFull() {
    SimulatedLink behind = slowed(true);
    assertThat(behind.delivered / 20.0).isGreaterThan(0.8 * 5e6 / 12);
    assertThat(behind.longestNanos).isLessThan(slowed(false).longestNanos * 3 / 4);
  }

  private static SimulatedLink slowed(boolean isBehind) {
    SimulatedLink link = new SimulatedLink(5e6, 200);
    LinkWindow window = new LinkWindow();
    link.run(window, 20_000);
    link.bytesPerSecond /= 12;
    link.isBehind = isBehind;
    link.run(window, 20_000);
    link.run(window, 20_000);
    return link;
  }

  /** A window that is as large as a fast link needs it, with nothing under way. */
  private static LinkWindow opened(SimulatedLink link) {
    LinkWindow window = new LinkWindow();
    link.run(window, 20_000);
    link.finish(window);
    assertThat(window.limitBytes()).isGreaterThan(4 << 20);
    return window;
  }

  @Test
  void whatIsNotUsedIsNotKept() {
    LinkWindow window = opened(new SimulatedLink(50e6, 100));
    for (int second = 100; second < 140; second++) {
      window.sent(100_000, Purpose.LIVE, second * 1_000 * MS);
      window.acknowledged(
          100_000, Purpose.LIVE, second * 1_000 * MS, (second * 1_000 + 100) * MS, false);
    }
    assertThat(window.limitBytes()).isBetween(100_000L, 150_000L);
  }

  @Test
  void afterAnIdleTimeLittleIsSentAtOnce() {
    SimulatedLink link = new SimulatedLink(50e6, 100);
    LinkWindow window = opened(link);
    window.sent(1, Purpose.LIVE, link.now + 5_000 * MS);
    assertThat(window.limitBytes()).isGreaterThan(4 << 20);
    window.acknowledged(1, Purpose.LIVE, link.now + 5_000 * MS, link.now + 5_100 * MS, false);
    window.sent(1, Purpose.LIVE, link.now + 20_000 * MS);
    assertThat(window.limitBytes()).isEqualTo(UnderWay.BYTES_INITIAL);
  }

  @Test
  void anOutageIsNotTakenForALowSpeed() {
    LinkWindow window = new LinkWindow();
    SimulatedLink link = new SimulatedLink(5e6, 100);
    link.run(window, 20_000);
    double before = window.bytesPerSecond();
    link.freeAt += 20_000 * MS;
    link.run(window, 100);
    assertThat(window.bytesPerSecond()).isGreaterThan(before / 2);
  }

  @Test
  void aLinkThatIsNotFullIsNotDrained() {
    LinkWindow window = new LinkWindow();
    long limit = window.limitBytes();
    for (int turn = 0; turn < 1_000; turn++) {
      long now = turn * 50 * MS;
      window.sent(limit / 2, Purpose.LIVE, now);
      window.acknowledged(limit / 2, Purpose.LIVE, now, now + (40 + turn % 3) * MS, false);
      assertThat(window.limitBytes()).isGreaterThan(limit / 2);
    }
  }

  @Test
  void catchUpTakesWhatIsLeftWithoutAQueue() {
    SimulatedLink link = new SimulatedLink(1.25e6, 100);
    LinkWindow window = new LinkWindow();
    link.catchUp(window, 30_000, 5_000);
    link.catchUp(window, 30_000, 5_000);
    assertThat(link.delivered / 30.0).isGreaterThan(0.8 * 1.25e6);
    // The way and a quarter, twice: what has crept in is drained only every other spell.
    assertThat(link.longestLiveNanos).isLessThan(170 * MS);
  }

  @Test
  void catchUpGoesOnBesideLiveChangesThatFillTheLink() {
    SimulatedLink link = new SimulatedLink(1.25e6, 100);
    LinkWindow window = new LinkWindow();
    link.run(window, 20_000);
    link.catchUp(window, 30_000, 62_000);
    assertThat(link.delivered / 30.0).isGreaterThan(0.8 * 1.25e6);
    assertThat(link.deliveredOfCatchUp / 30.0).isGreaterThan(0.05 * 1.25e6);
  }

  @Test
  void tellsHowLongItHasHeardNothing() {
    LinkWindow window = new LinkWindow();
    assertThat(window.silentMs(5_000 * MS)).isZero();
    window.sent(100, Purpose.LIVE, 5_000 * MS);
    assertThat(window.silentMs(8_000 * MS)).isEqualTo(3_000);
    window.acknowledged(100, Purpose.LIVE, 5_000 * MS, 8_000 * MS, false);
    assertThat(window.silentMs(9_000 * MS)).isZero();
  }

  @Test
  void failuresShrinkItToAFloor() {
    LinkWindow window = new LinkWindow();
    for (int i = 0; i < 100; i++) {
      window.sent(1_000, Purpose.LIVE, i * 1_000 * MS);
      window.failed(1_000, Purpose.LIVE, i * 1_000 * MS + MS);
    }
    assertThat(window.limitBytes()).isEqualTo(UnderWay.BYTES_MIN);
    assertThat(window.inFlightBytes()).isZero();
  }
}
