package dev.freshet.connectors.chunk;

/**
 * A chunk as it came: its header, and its changes still packed. {@link ChunkCodec} makes and
 * unpacks it. Immutable.
 */
public final class Chunk {

  /** The whole chunk in single-object encoding. */
  final byte[] wire;

  /** Where in it the route is. */
  final int routeFrom;

  final int routeEnd;

  /** Where in it the LZ4 frame is. */
  final int frameFrom;

  final int frameEnd;

  private final ChunkHeader header;
  private final int changes;
  private final int rawBytes;

  Chunk(
      ChunkHeader header,
      int changes,
      int rawBytes,
      byte[] wire,
      int routeFrom,
      int routeEnd,
      int frameFrom,
      int frameEnd) {
    this.header = header;
    this.changes = changes;
    this.rawBytes = rawBytes;
    this.wire = wire;
    this.routeFrom = routeFrom;
    this.routeEnd = routeEnd;
    this.frameFrom = frameFrom;
    this.frameEnd = frameEnd;
  }

  /** What the chunk says of itself. */
  public ChunkHeader header() {
    return header;
  }

  /** Number of changes. */
  public int changes() {
    return changes;
  }

  /** Size of the changes before compression, bytes. */
  public int rawBytes() {
    return rawBytes;
  }

  /** Size of the whole chunk, bytes. */
  public int wireBytes() {
    return wire.length;
  }
}
