package dev.freshet.connectors.chunk;

/**
 * One change in a chunk.
 *
 * @param shard partition of the changes topic
 * @param firstOffset offset of the oldest change of the key that this one stands for
 * @param change the newest one
 */
public record ChunkEntry(int shard, long firstOffset, KeyChange change) {}
