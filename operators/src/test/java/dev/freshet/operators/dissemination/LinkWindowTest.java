package dev.freshet.operators.dissemination;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayDeque;
import org.junit.jupiter.api.Test;

/** Goal: a window fits its link. Method: a simulated link with a rate and a round trip. */
class LinkWindowTest {

  private static final long MS = 1_000_000;

  /** A link that serves one chunk after the other. */
  private static final class SimulatedLink {
    private record Chunk(long bytes, long sentNanos, long doneNanos) {}

    private final double bytesPerSecond;
    private final long roundTripNanos;
    private final ArrayDeque<Chunk> chunks = new ArrayDeque<>();
    private long freeAt;
    private long now = 1_000 * MS;
    long delivered;
    long longestNanos;

    SimulatedLink(double bytesPerSecond, long roundTripMs) {
      this.bytesPerSecond = bytesPerSecond;
      this.roundTripNanos = roundTripMs * MS;
    }

    /** Sends as much as the window allows, for so long. */
    void run(LinkWindow window, long durationMs) {
      long end = now + durationMs * MS;
      delivered = 0;
      longestNanos = 0;
      while (now < end) {
        while (window.hasRoom()) {
          long bytes = window.chunkBytesMax();
          freeAt = Math.max(freeAt, now) + (long) (bytes / bytesPerSecond * 1e9);
          chunks.add(new Chunk(bytes, now, freeAt + roundTripNanos));
          window.sent(bytes, now);
        }
        Chunk first = chunks.removeFirst();
        now = Math.max(now, first.doneNanos());
        delivered += first.bytes();
        longestNanos = Math.max(longestNanos, now - first.sentNanos());
        window.acknowledged(first.bytes(), first.sentNanos(), now);
      }
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
  void tellsHowLongItHasHeardNothing() {
    LinkWindow window = new LinkWindow();
    assertThat(window.silentMs(5_000 * MS)).isZero();
    window.sent(100, 5_000 * MS);
    assertThat(window.silentMs(8_000 * MS)).isEqualTo(3_000);
    window.acknowledged(100, 5_000 * MS, 8_000 * MS);
    assertThat(window.silentMs(9_000 * MS)).isZero();
  }

  @Test
  void failuresShrinkItToAFloor() {
    LinkWindow window = new LinkWindow();
    for (int i = 0; i < 100; i++) {
      window.sent(1_000, i * 1_000 * MS);
      window.failed(1_000, i * 1_000 * MS + MS);
    }
    assertThat(window.limitBytes()).isEqualTo(LinkWindow.BYTES_MIN);
    assertThat(window.inFlightBytes()).isZero();
  }
}
