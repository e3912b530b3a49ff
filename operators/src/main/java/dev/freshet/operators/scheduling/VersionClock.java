package dev.freshet.operators.scheduling;

/**
 * Hybrid logical clock of one origin, with one hand for each key group, so that timestamps are
 * strictly increasing within (origin, key group) wherever the key group runs after a rescaling.
 *
 * <p>The physical part is given by the caller: the wall clock, or event time where a replay must
 * issue the same versions. The hands are derived state: {@link #observe} rebuilds them from the
 * keys' records.
 *
 * <p>Timeline of a key group: physical 100, next() = 100; physical 100, next() = 101; the physical
 * clock steps back to 90, next() = 102; physical 200, next() = 200.
 */
final class VersionClock {

  private final long[] last;

  VersionClock(int maxParallelism) {
    last = new long[maxParallelism];
  }

  /** Never issue a timestamp at or below this one in the key group. */
  void observe(int keyGroup, long timestampMicros) {
    last[keyGroup] = Math.max(last[keyGroup], timestampMicros);
  }

  /** The next timestamp of the key group, microseconds. */
  long next(int keyGroup, long physicalMicros) {
    last[keyGroup] = Math.max(last[keyGroup] + 1, physicalMicros);
    return last[keyGroup];
  }
}
