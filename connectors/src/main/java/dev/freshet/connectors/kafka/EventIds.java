package dev.freshet.connectors.kafka;

/**
 * Hash of an event's id field. It is kept in state, so it is the same in every run, on every
 * machine and in every release: FNV-1a over the text's UTF-16 units, then the finalizer of
 * splitmix64, which spreads short texts over all 64 bits.
 */
final class EventIds {

  private static final long FNV_OFFSET_BASIS = 0xcbf29ce484222325L;
  private static final long FNV_PRIME = 0x100000001b3L;

  private EventIds() {}

  static long hash(String text) {
    long hash = FNV_OFFSET_BASIS;
    for (int i = 0; i < text.length(); i++) {
      char unit = text.charAt(i);
      hash = (hash ^ (unit & 0xFF)) * FNV_PRIME;
      hash = (hash ^ (unit >>> 8)) * FNV_PRIME;
    }
    hash = (hash ^ (hash >>> 30)) * 0xbf58476d1ce4e5b9L;
    hash = (hash ^ (hash >>> 27)) * 0x94d049bb133111ebL;
    return hash ^ (hash >>> 31);
  }
}
