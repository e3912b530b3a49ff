package dev.freshet.connectors.chunk;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import net.jpountz.lz4.LZ4Compressor;
import net.jpountz.lz4.LZ4Exception;
import net.jpountz.lz4.LZ4Factory;
import net.jpountz.lz4.LZ4SafeDecompressor;
import net.jpountz.xxhash.XXHash32;
import net.jpountz.xxhash.XXHashFactory;

/**
 * LZ4 frames of independent blocks with a content checksum, in one piece. The library's streams
 * make and read the same, but allocate 130 KB for each frame, which is ten times the cost of a
 * small chunk; blocks and hashes are the library's. Not thread-safe.
 *
 * <pre>
 * u32 magic, u8 flags, u8 block size, u8 header's hash; then blocks: u32 length, bytes; u32 0; u32 content's hash
 * </pre>
 */
final class Lz4Frames {

  private static final int MAGIC = 0x184D2204;

  /** Version 1, independent blocks, content checksum; and nothing else. */
  private static final byte FLAGS = 0x64;

  private static final int HEADER_BYTES = 7;
  private static final int SMALLEST_BLOCKS = 4;
  private static final int LARGEST_BLOCKS = 7;
  private static final int STORED = 0x8000_0000;
  private static final int SEED = 0;

  private static final LZ4Factory LZ4 = nativeIfPossible();

  private final LZ4Compressor compressor = LZ4.fastCompressor();
  private final LZ4SafeDecompressor decompressor = LZ4.safeDecompressor();
  private final XXHash32 hash = XXHashFactory.fastestInstance().hash32();
  private ByteBuffer scratch = ByteBuffer.allocate(0);
  private byte[] raw = {};

  /**
   * The library itself takes native code only in the system's class loader, and jobs are in
   * Flink's. It compresses more than twice as fast as Java's; each class loader that asks has a
   * copy.
   */
  private static LZ4Factory nativeIfPossible() {
    try {
      return LZ4Factory.nativeInstance();
    } catch (LinkageError | AssertionError | RuntimeException e) {
      return LZ4Factory.fastestInstance();
    }
  }

  /** Compresses the first bytes of an array. The frame is valid until the next call. */
  ByteBuffer compress(byte[] bytes, int length) {
    int sizeCode = SMALLEST_BLOCKS;
    while (sizeCode < LARGEST_BLOCKS && length > blockBytes(sizeCode)) {
      sizeCode++;
    }
    int block = blockBytes(sizeCode);
    int blocks = (length + block - 1) / block;
    ByteBuffer frame = reserve(length, blocks);
    frame.putInt(MAGIC).put(FLAGS).put((byte) (sizeCode << 4));
    frame.put(headerHash(frame.array()));
    for (int from = 0; from < length; from += block) {
      putBlock(frame, bytes, from, Math.min(block, length - from));
    }
    frame.putInt(0).putInt(hash.hash(bytes, 0, length, SEED));
    return frame.flip();
  }

  private ByteBuffer reserve(int length, int blocks) {
    // No block is larger than its content: one that grows is stored as it is. The compressor
    // needs room to find that out.
    int most = HEADER_BYTES + compressor.maxCompressedLength(length) + blocks * 20 + 8;
    if (scratch.capacity() < most) {
      scratch =
          ByteBuffer.allocate(Math.max(most, 2 * scratch.capacity()))
              .order(ByteOrder.LITTLE_ENDIAN);
    }
    return scratch.clear();
  }

  private void putBlock(ByteBuffer frame, byte[] bytes, int from, int length) {
    int at = frame.position() + Integer.BYTES;
    int packed = compressor.compress(bytes, from, length, frame.array(), at);
    if (packed < length) {
      frame.putInt(packed).position(at + packed);
    } else {
      frame.putInt(length | STORED).put(bytes, from, length);
    }
  }

  /**
   * Decompresses a frame. The content is valid until the next call.
   *
   * @param rawBytes size of the content
   * @throws BadBytesException if it is no such frame, is damaged, or has another size
   */
  byte[] decompress(byte[] bytes, int from, int end, int rawBytes) throws BadBytesException {
    ByteBuffer frame = ByteBuffer.wrap(bytes, from, end - from).order(ByteOrder.LITTLE_ENDIAN);
    if (raw.length < rawBytes) {
      raw = new byte[Math.max(rawBytes, (int) Math.min(2L * raw.length, ChunkCodec.RAW_BYTES_MAX))];
    }
    readHeader(frame);
    int size = 0;
    for (int length = readInt(frame); length != 0; length = readInt(frame)) {
      size += readBlock(frame, length, size, rawBytes);
    }
    if (size != rawBytes) {
      throw new BadBytesException("its LZ4 frame has " + size + " bytes instead of " + rawBytes);
    }
    if (readInt(frame) != hash.hash(raw, 0, size, SEED)) {
      throw new BadBytesException("its LZ4 frame's content has another checksum than it says");
    }
    if (frame.hasRemaining()) {
      throw new BadBytesException(frame.remaining() + " bytes follow its LZ4 frame");
    }
    return raw;
  }

  private void readHeader(ByteBuffer frame) throws BadBytesException {
    if (frame.remaining() < HEADER_BYTES || frame.getInt() != MAGIC) {
      throw new BadBytesException("its payload is no LZ4 frame");
    }
    byte flags = frame.get();
    if (flags != FLAGS) {
      throw new BadBytesException(
          "its LZ4 frame has the flags "
              + Integer.toHexString(Byte.toUnsignedInt(flags))
              + " instead of 64: independent blocks and a content checksum only");
    }
    byte sizes = frame.get();
    byte found = frame.get();
    if (found != headerHash(new byte[] {0, 0, 0, 0, flags, sizes})) {
      throw new BadBytesException("its LZ4 frame's header is damaged");
    }
  }

  /** Gives the size of the block's content. */
  private int readBlock(ByteBuffer frame, int announced, int at, int rawBytes)
      throws BadBytesException {
    int length = announced & ~STORED;
    if (length > frame.remaining()) {
      throw new BadBytesException("its LZ4 frame ends within a block");
    }
    int from = frame.position();
    frame.position(from + length);
    if ((announced & STORED) == 0) {
      try {
        return decompressor.decompress(frame.array(), from, length, raw, at, rawBytes - at);
      } catch (LZ4Exception e) {
        throw new BadBytesException("a block of its LZ4 frame is damaged or too large");
      }
    }
    if (length > rawBytes - at) {
      throw new BadBytesException("its LZ4 frame has more than " + rawBytes + " bytes");
    }
    System.arraycopy(frame.array(), from, raw, at, length);
    return length;
  }

  private static int readInt(ByteBuffer frame) throws BadBytesException {
    if (frame.remaining() < Integer.BYTES) {
      throw new BadBytesException("its LZ4 frame is cut short");
    }
    return frame.getInt();
  }

  private byte headerHash(byte[] header) {
    return (byte) (hash.hash(header, Integer.BYTES, 2, SEED) >> 8);
  }

  /** 64 KB, 256 KB, 1 MB or 4 MB. */
  private static int blockBytes(int sizeCode) {
    return 1 << (8 + 2 * sizeCode);
  }
}
