package dev.freshet.operators.scheduling;

import java.nio.charset.StandardCharsets;

/**
 * Recomputes any key that has pending data, each as likely as the other (RALF §2.5.3).
 *
 * <p>With a budget by event time, lots are drawn anew for every step: a key's lot is a hash of
 * seed, key and step, so that a replay draws the same. A lot that a key kept until its next update
 * would not do: keys with small lots would be left over, and those just updated drawn again and
 * again. With a budget on the wall clock every single choice is a draw among the pending keys.
 *
 * @param seed another seed draws other lots
 */
public record RandomPolicy(long seed) implements SchedulingPolicy {

  /** Name of the policy. */
  public static final String NAME = "random";

  private static final long FNV_OFFSET_BASIS = 0xcbf29ce484222325L;
  private static final long FNV_PRIME = 0x100000001b3L;

  /** Bits of a double's fraction. */
  private static final int FRACTION_BITS = 53;

  @Override
  public String name() {
    return NAME;
  }

  /** Before lots are drawn all keys are equal. */
  @Override
  public double priority(KeyRecord record) {
    return 0;
  }

  /**
   * The lot of a key in one drawing: FNV-1a over the key's UTF-8 bytes, then the finalizer of
   * splitmix64 over that plus the seed, and once more plus the drawing; the upper 53 bits as a
   * fraction.
   *
   * @param drawing end of the event-time step, epoch milliseconds
   * @return uniform in [0, 1)
   */
  double lot(String key, long drawing) {
    long hash = FNV_OFFSET_BASIS;
    for (byte unit : key.getBytes(StandardCharsets.UTF_8)) {
      hash = (hash ^ Byte.toUnsignedLong(unit)) * FNV_PRIME;
    }
    long mixed = mix(mix(hash + seed) + drawing);
    return (mixed >>> (Long.SIZE - FRACTION_BITS)) * 0x1p-53;
  }

  private static long mix(long bits) {
    long hash = (bits ^ (bits >>> 30)) * 0xbf58476d1ce4e5b9L;
    hash = (hash ^ (hash >>> 27)) * 0x94d049bb133111ebL;
    return hash ^ (hash >>> 31);
  }
}
