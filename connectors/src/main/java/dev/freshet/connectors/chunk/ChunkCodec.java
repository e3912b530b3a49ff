package dev.freshet.connectors.chunk;

import dev.freshet.schemas.Purpose;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.zip.CRC32C;

/**
 * The wire format of chunks: Chunk.avsc in Avro's single-object encoding, byte for byte as Avro
 * writes it, with a ChunkPayload in an LZ4 frame. Keeps its buffers from chunk to chunk; not
 * thread-safe.
 *
 * <p>A chunk is checked in two steps: {@link #decode} checks the whole of it and its header, {@link
 * #entries} unpacks the changes. A relay that only passes a chunk on needs the first alone.
 */
public final class ChunkCodec {

  /** Largest size of a chunk's changes before compression. */
  public static final int RAW_BYTES_MAX = 64 << 20;

  private static final SchemaHeader SCHEMA =
      new SchemaHeader(dev.freshet.schemas.Chunk.getClassSchema());
  private static final byte[] NO_CHECKSUM = new byte[Integer.BYTES];
  private static final int CHECKED_FROM = SchemaHeader.BYTES + NO_CHECKSUM.length;
  private static final int COVERAGE_BYTES_MIN = 3;
  private static final Purpose[] PURPOSES = Purpose.values();

  private final AvroOutput raw = new AvroOutput();
  private final AvroOutput out = new AvroOutput();
  private final Lz4Frames frames = new Lz4Frames();
  private final CRC32C crc = new CRC32C();

  /**
   * Makes a chunk.
   *
   * @param entries in any order; they come out by shard, and of each shard in this order
   * @throws IllegalArgumentException if the changes are more than {@link #RAW_BYTES_MAX}, or the
   *     route is no tree
   */
  public byte[] encode(ChunkHeader header, List<ChunkEntry> entries) {
    raw.clear();
    PayloadCodec.write(entries, raw);
    if (raw.size() > RAW_BYTES_MAX) {
      throw new IllegalArgumentException(
          "the "
              + entries.size()
              + " changes of a chunk have "
              + raw.size()
              + " bytes, and at most "
              + RAW_BYTES_MAX
              + " are allowed; make smaller chunks");
    }
    ByteBuffer frame = frames.compress(raw.array(), raw.size());
    out.clear();
    SCHEMA.write(out);
    out.writeFixed(NO_CHECKSUM, 0, NO_CHECKSUM.length);
    writeHeader(header);
    out.writeInt(entries.size());
    out.writeInt(raw.size());
    out.writeInt(frame.remaining());
    return sealed(frame.array(), frame.position(), frame.remaining());
  }

  /**
   * The same chunk for the next hop. What is packed is not touched.
   *
   * @param child where it goes: one of the children of the chunk's route
   * @throws IllegalArgumentException if the route is no tree
   */
  public byte[] forward(Chunk chunk, Route child) {
    out.clear();
    out.writeFixed(chunk.wire, 0, chunk.routeFrom);
    RouteCodec.write(child, chunk.header().clocksAhead(), out);
    return sealed(chunk.wire, chunk.routeEnd, chunk.wire.length - chunk.routeEnd);
  }

  /** What was written and these bytes in one, with the checksum. */
  private byte[] sealed(byte[] rest, int from, int length) {
    byte[] wire = new byte[out.size() + length];
    System.arraycopy(out.array(), 0, wire, 0, out.size());
    System.arraycopy(rest, from, wire, out.size(), length);
    bytes(wire).putInt(SchemaHeader.BYTES, checksum(wire));
    return wire;
  }

  /**
   * Reads a chunk's header.
   *
   * @param wire not to be changed any more
   * @throws DamagedChunkException if it is no whole chunk, or one that this release cannot read
   */
  public Chunk decode(byte[] wire) throws DamagedChunkException {
    if (!SCHEMA.startsOf(wire)) {
      throw new DamagedChunkException(
          wire.length
              + " bytes do not begin as a chunk of this release does, with "
              + SCHEMA
              + "; upgrade this region if a newer release sends, else check the topic");
    }
    if (wire.length < CHECKED_FROM || bytes(wire).getInt(SchemaHeader.BYTES) != checksum(wire)) {
      throw new DamagedChunkException(
          "a chunk of "
              + wire.length
              + " bytes has another checksum than it says: it was damaged on its way or cut short");
    }
    try {
      return readChunk(wire, new AvroInput(wire, CHECKED_FROM, wire.length));
    } catch (BadBytesException | IllegalArgumentException e) {
      throw damaged(wire, e);
    }
  }

  /**
   * Unpacks a chunk's changes.
   *
   * @throws DamagedChunkException if they are not what the header says, or no store can hold one
   */
  public List<ChunkEntry> entries(Chunk chunk) throws DamagedChunkException {
    try {
      byte[] content =
          frames.decompress(chunk.wire, chunk.frameFrom, chunk.frameEnd, chunk.rawBytes());
      return PayloadCodec.read(new AvroInput(content, 0, chunk.rawBytes()), chunk.changes());
    } catch (BadBytesException | IllegalArgumentException e) {
      throw damaged(chunk.wire, e);
    }
  }

  private void writeHeader(ChunkHeader header) {
    out.writeLong(header.id());
    out.writeString(header.sender());
    out.writeString(header.table());
    out.writeString(header.log());
    out.writeInt(header.purpose().ordinal());
    out.writeLong(header.plan());
    out.writeInt(header.stripe());
    RouteCodec.write(header.route(), header.clocksAhead(), out);
    if (!header.coverage().isEmpty()) {
      out.writeInt(header.coverage().size());
      for (Covered range : header.coverage()) {
        out.writeInt(range.shard());
        out.writeLong(range.after());
        out.writeLong(range.upto());
      }
    }
    out.writeInt(0);
    out.writeLong(header.sentAtMicros());
    out.writeLong(header.deadlineMs());
  }

  private static Chunk readChunk(byte[] wire, AvroInput in) throws BadBytesException {
    long id = in.readLong();
    String sender = in.readString();
    String table = in.readString();
    String log = in.readString();
    Purpose purpose = PURPOSES[in.readIndex(PURPOSES.length)];
    long plan = in.readLong();
    int stripe = in.readInt();
    int routeFrom = in.position();
    Map<String, Long> clocksAhead = new HashMap<>();
    Route route = RouteCodec.read(in, clocksAhead);
    int routeEnd = in.position();
    List<Covered> coverage = readCoverage(in);
    long sentAtMicros = in.readLong();
    long deadlineMs = in.readLong();
    int changes = in.readInt();
    int rawBytes = in.readInt();
    checkSizes(changes, rawBytes);
    int frameFrom = in.skipBytes();
    int frameEnd = in.position();
    in.expectEnd();
    ChunkHeader header =
        new ChunkHeader(
            id,
            sender,
            table,
            log,
            purpose,
            plan,
            stripe,
            route,
            clocksAhead,
            coverage,
            sentAtMicros,
            deadlineMs);
    return new Chunk(header, changes, rawBytes, wire, routeFrom, routeEnd, frameFrom, frameEnd);
  }

  private static List<Covered> readCoverage(AvroInput in) throws BadBytesException {
    List<Covered> coverage = new ArrayList<>();
    for (int left = in.readBlock(COVERAGE_BYTES_MIN);
        left > 0;
        left = in.readBlock(COVERAGE_BYTES_MIN)) {
      for (; left > 0; left--) {
        coverage.add(new Covered(in.readInt(), in.readLong(), in.readLong()));
      }
    }
    return coverage;
  }

  private static void checkSizes(int changes, int rawBytes) throws BadBytesException {
    if (rawBytes < 0 || rawBytes > RAW_BYTES_MAX) {
      throw new BadBytesException(
          "its changes have " + rawBytes + " bytes, and at most " + RAW_BYTES_MAX + " are allowed");
    }
    if (changes < 0 || changes > rawBytes / PayloadCodec.CHANGE_BYTES_MIN) {
      throw new BadBytesException(
          "it says that " + changes + " changes are in " + rawBytes + " bytes");
    }
  }

  private int checksum(byte[] wire) {
    crc.reset();
    crc.update(wire, CHECKED_FROM, wire.length - CHECKED_FROM);
    return (int) crc.getValue();
  }

  private static ByteBuffer bytes(byte[] wire) {
    return ByteBuffer.wrap(wire).order(ByteOrder.LITTLE_ENDIAN);
  }

  private static DamagedChunkException damaged(byte[] wire, Exception reason) {
    return new DamagedChunkException(
        "a chunk of " + wire.length + " bytes cannot be used: " + reason.getMessage());
  }
}
