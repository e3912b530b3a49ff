package dev.freshet.connectors.chunk;

/**
 * A range of a shard's log: the chunk that it stands in has, of every key that changed in it, that
 * change or a newer one.
 *
 * @param shard partition of the changes topic
 * @param after offset before the range; -1 for the log's beginning
 * @param upto last offset of the range
 */
public record Covered(int shard, long after, long upto) {

  public Covered {
    if (shard < 0 || after < -1 || upto <= after) {
      throw new IllegalArgumentException(
          "shard " + shard + ": a range after " + after + " up to " + upto + " is none");
    }
  }
}
