package dev.freshet.operators.scheduling;

import dev.freshet.connectors.record.Event;
import dev.freshet.connectors.record.ValueKind;
import java.util.SplittableRandom;

/** Scalar events of uniformly random keys, in order of event time. */
final class Events {

  private static final long FIRST_MS = 1_700_000_000_000L;

  private final String[] keys;
  private final SplittableRandom random = new SplittableRandom(20_261_120);
  private final byte[] value = new byte[Double.BYTES];
  private long now = FIRST_MS;

  Events(int keys) {
    this.keys = keys(keys);
  }

  /** Names of so many keys, all of one length. */
  static String[] keys(int count) {
    String[] keys = new String[count];
    for (int i = 0; i < count; i++) {
      keys[i] = String.format("vm-%07d", i);
    }
    return keys;
  }

  int keyCount() {
    return keys.length;
  }

  /** The next event of this key. */
  Event of(int key) {
    return new Event(keys[key], now++, 0, ValueKind.SCALAR, value.clone());
  }

  /** The next event, of a random key. */
  Event next() {
    return of(random.nextInt(keys.length));
  }
}
