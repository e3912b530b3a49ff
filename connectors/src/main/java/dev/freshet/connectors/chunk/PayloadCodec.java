package dev.freshet.connectors.chunk;

import dev.freshet.connectors.record.Version;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;

/**
 * The changes of a chunk before compression: ChunkPayload.avsc, without a header of its own.
 * Differences are modulo 2^64, so that any two times have one.
 */
final class PayloadCodec {

  /** An empty key, five varints, the kind, a boolean, a float and an empty value. */
  static final int CHANGE_BYTES_MIN = 13;

  private static final int SHARD_BYTES_MIN = 3;

  private PayloadCodec() {}

  /** Writes changes, by shard, and of each shard in the order given. */
  static void write(List<ChunkEntry> entries, AvroOutput out) {
    ChunkEntry[] byShard = entries.toArray(new ChunkEntry[0]);
    Arrays.sort(byShard, Comparator.comparingInt(ChunkEntry::shard));
    long baseTimestamp = byShard.length == 0 ? 0 : Long.MAX_VALUE;
    long baseTime = baseTimestamp;
    int shards = 0;
    for (int i = 0; i < byShard.length; i++) {
      KeyChange change = byShard[i].change();
      baseTimestamp = Math.min(baseTimestamp, change.version().timestampMicros());
      baseTime = Math.min(baseTime, change.computedAtMs());
      shards += i == 0 || byShard[i].shard() != byShard[i - 1].shard() ? 1 : 0;
    }
    out.writeLong(baseTimestamp);
    out.writeLong(baseTime);
    if (shards > 0) {
      out.writeInt(shards);
    }
    for (int from = 0; from < byShard.length; ) {
      int end = endOfShard(byShard, from);
      writeShard(byShard, from, end, baseTimestamp, baseTime, out);
      from = end;
    }
    out.writeInt(0);
  }

  private static int endOfShard(ChunkEntry[] byShard, int from) {
    int end = from;
    while (end < byShard.length && byShard[end].shard() == byShard[from].shard()) {
      end++;
    }
    return end;
  }

  private static void writeShard(
      ChunkEntry[] byShard, int from, int end, long baseTimestamp, long baseTime, AvroOutput out) {
    long baseOffset = Long.MAX_VALUE;
    for (int i = from; i < end; i++) {
      baseOffset = Math.min(baseOffset, byShard[i].offset());
    }
    out.writeInt(byShard[from].shard());
    out.writeLong(baseOffset);
    out.writeInt(end - from);
    for (int i = from; i < end; i++) {
      KeyChange change = byShard[i].change();
      out.writeString(change.key());
      out.writeLong(byShard[i].offset() - baseOffset);
      out.writeLong(change.version().timestampMicros() - baseTimestamp);
      out.writeInt(change.version().origin());
      out.writeLong(change.eventTimeMs() - baseTime);
      out.writeLong(change.computedAtMs() - baseTime);
      out.writeInt(change.kind());
      out.writeBoolean(change.isFirst());
      out.writeFloat(change.regretRemoved());
      out.writeBytes(change.value());
    }
    out.writeInt(0);
  }

  /**
   * Reads changes.
   *
   * @param expected how many there should be
   * @throws BadBytesException if the bytes are something else, or have another number of changes
   * @throws IllegalArgumentException if a store cannot hold a change
   */
  static List<ChunkEntry> read(AvroInput in, int expected) throws BadBytesException {
    long baseTimestamp = in.readLong();
    long baseTime = in.readLong();
    List<ChunkEntry> entries = new ArrayList<>(expected);
    for (int left = in.readBlock(SHARD_BYTES_MIN); left > 0; left = in.readBlock(SHARD_BYTES_MIN)) {
      for (; left > 0; left--) {
        readShard(in, baseTimestamp, baseTime, entries);
      }
    }
    in.expectEnd();
    if (entries.size() != expected) {
      throw new BadBytesException(
          "it has " + entries.size() + " changes, and its header says " + expected);
    }
    return entries;
  }

  private static void readShard(
      AvroInput in, long baseTimestamp, long baseTime, List<ChunkEntry> entries)
      throws BadBytesException {
    int shard = in.readInt();
    long baseOffset = in.readLong();
    for (int left = in.readBlock(CHANGE_BYTES_MIN);
        left > 0;
        left = in.readBlock(CHANGE_BYTES_MIN)) {
      for (; left > 0; left--) {
        entries.add(readChange(in, shard, baseOffset, baseTimestamp, baseTime));
      }
    }
  }

  private static ChunkEntry readChange(
      AvroInput in, int shard, long baseOffset, long baseTimestamp, long baseTime)
      throws BadBytesException {
    String key = in.readString();
    long offset = baseOffset + in.readLong();
    Version version = new Version(baseTimestamp + in.readLong(), in.readInt());
    long eventTimeMs = baseTime + in.readLong();
    long computedAtMs = baseTime + in.readLong();
    int kind = in.readInt();
    boolean isFirst = in.readBoolean();
    float regretRemoved = in.readFloat();
    byte[] value = in.readBytes();
    return new ChunkEntry(
        shard,
        offset,
        new KeyChange(
            key, version, eventTimeMs, computedAtMs, kind, isFirst, regretRemoved, value));
  }
}
