package dev.freshet.connectors.chunk;

/**
 * One change in a chunk.
 *
 * @param shard partition of the changes topic
 * @param offset of the change
 * @param change the newest one
 */
public record ChunkEntry(int shard, long offset, KeyChange change) {

  public ChunkEntry {
    if (shard < 0 || offset < 0) {
      throw new IllegalArgumentException(
          "a change at offset " + offset + " of shard " + shard + ": both are at least 0");
    }
  }
}
