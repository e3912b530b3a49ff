package dev.freshet.operators.scheduling;

import java.io.Serializable;

/**
 * How far a feature's window reaches back: a number of points, or a duration.
 *
 * @param points number of newest points, or 0 for a duration
 * @param durationMs length in event time, milliseconds, or 0 for points
 */
public record WindowExtent(int points, long durationMs) implements Serializable {

  public WindowExtent {
    if ((points > 0) == (durationMs > 0) || points < 0 || durationMs < 0) {
      throw new IllegalArgumentException(
          "a window is a number of points or a duration, both above 0, not "
              + points
              + " points and "
              + durationMs
              + " ms");
    }
  }

  /** A window of this many newest points. */
  public static WindowExtent ofPoints(int points) {
    return new WindowExtent(points, 0);
  }

  /** A window of this length, milliseconds of event time. */
  public static WindowExtent ofDuration(long durationMs) {
    return new WindowExtent(0, durationMs);
  }

  /**
   * Index of the first entry in the window that ends with the through-th entry. A duration reaches
   * back from that entry and not from a clock, so that a window does not depend on when it is read.
   *
   * @param through number of entries up to the window's end
   */
  int firstIndex(RawWindow window, int through) {
    if (points > 0 || through == 0) {
      return Math.max(0, through - points);
    }
    return window.countThrough(RawWindow.timestamp(window.entries().get(through - 1)) - durationMs);
  }
}
