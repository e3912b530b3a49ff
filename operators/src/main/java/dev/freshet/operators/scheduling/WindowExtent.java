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

  /** Index of the first entry in the window as of a time, given the entries through that time. */
  int firstIndex(RawWindow window, int through, long asOf) {
    if (points > 0) {
      return Math.max(0, through - points);
    }
    return Math.min(through, window.countThrough(asOf - durationMs));
  }
}
