package dev.freshet.operators.dissemination;

import dev.freshet.connectors.chunk.Chunk;
import dev.freshet.connectors.chunk.ChunkCodec;
import dev.freshet.connectors.chunk.ChunkEntry;
import dev.freshet.connectors.chunk.ChunkHeader;
import dev.freshet.connectors.chunk.DamagedChunkException;
import java.util.List;

/** A chunk that came in, unpacked once and only if that is needed. */
final class Arrival {

  private final int partition;
  private final Chunk chunk;
  private final long receivedAtMicros;
  private final ChunkCodec codec;
  private List<ChunkEntry> entries;

  /**
   * @param partition of the inbox that it came in
   * @param receivedAtMicros when, this region's clock
   */
  Arrival(int partition, Chunk chunk, long receivedAtMicros, ChunkCodec codec) {
    this.partition = partition;
    this.chunk = chunk;
    this.receivedAtMicros = receivedAtMicros;
    this.codec = codec;
  }

  int partition() {
    return partition;
  }

  Chunk chunk() {
    return chunk;
  }

  ChunkHeader header() {
    return chunk.header();
  }

  long receivedAtMicros() {
    return receivedAtMicros;
  }

  /**
   * Its changes.
   *
   * @throws DamagedChunkException if they cannot be unpacked
   */
  List<ChunkEntry> entries() throws DamagedChunkException {
    if (entries == null) {
      entries = codec.entries(chunk);
    }
    return entries;
  }
}
