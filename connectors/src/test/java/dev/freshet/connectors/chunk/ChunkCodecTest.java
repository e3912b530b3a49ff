package dev.freshet.connectors.chunk;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.freshet.schemas.ChunkPayload;
import dev.freshet.schemas.Purpose;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.zip.CRC32C;
import net.jpountz.lz4.LZ4FrameInputStream;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Example;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.io.BinaryEncoder;
import org.apache.avro.io.DecoderFactory;
import org.apache.avro.io.EncoderFactory;
import org.apache.avro.message.BinaryMessageDecoder;
import org.apache.avro.message.BinaryMessageEncoder;

/** Chunks come out as they went in, as Avro would write them, or not at all. */
final class ChunkCodecTest {

  private static final int CHECKSUM_AT = 10;
  private static final int CHECKED_FROM = 14;

  private final ChunkCodec codec = new ChunkCodec();

  @Provide
  Arbitrary<List<ChunkEntry>> entries() {
    return Chunks.anyEntries();
  }

  @Property(tries = 200)
  void changesComeOutByShardInTheirOrder(@ForAll("entries") List<ChunkEntry> entries)
      throws Exception {
    Chunk chunk = codec.decode(codec.encode(Chunks.header(), entries));

    assertThat(chunk.changes()).isEqualTo(entries.size());
    assertThat(codec.entries(chunk))
        .usingRecursiveComparison()
        .isEqualTo(entries.stream().sorted(Comparator.comparingInt(ChunkEntry::shard)).toList());
  }

  @Property(tries = 50)
  void theBytesAreThoseThatAvroWrites(@ForAll("entries") List<ChunkEntry> entries)
      throws Exception {
    byte[] wire = codec.encode(Chunks.header(), entries);

    Schema schema = dev.freshet.schemas.Chunk.getClassSchema();
    GenericRecord record =
        new BinaryMessageDecoder<GenericRecord>(GenericData.get(), schema).decode(wire);
    ByteBuffer again =
        new BinaryMessageEncoder<GenericRecord>(GenericData.get(), schema).encode(record);
    assertThat(again).isEqualTo(ByteBuffer.wrap(wire));

    byte[] payload = unpacked(((ByteBuffer) record.get("payload")).array());
    assertThat(payload).hasSize((int) record.get("raw_bytes"));
    assertThat(throughAvro(payload)).isEqualTo(payload);
  }

  private static byte[] unpacked(byte[] frame) throws IOException {
    try (LZ4FrameInputStream in = new LZ4FrameInputStream(new ByteArrayInputStream(frame))) {
      return in.readAllBytes();
    }
  }

  private static byte[] throughAvro(byte[] payload) throws IOException {
    Schema schema = ChunkPayload.getClassSchema();
    GenericRecord record =
        new GenericDatumReader<GenericRecord>(schema)
            .read(null, DecoderFactory.get().binaryDecoder(payload, null));
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    BinaryEncoder encoder = EncoderFactory.get().directBinaryEncoder(out, null);
    new GenericDatumWriter<GenericRecord>(schema).write(record, encoder);
    return out.toByteArray();
  }

  @Example
  void theHeaderComesOutWithTheClocksOfItsRoute() throws Exception {
    ChunkHeader header = Chunks.header();
    ChunkHeader found = codec.decode(codec.encode(header, Chunks.entries())).header();

    assertThat(found.clocksAhead()).isEqualTo(Map.of("gcp:us-east1", -1_500L, "azure:ü", 0L));
    assertThat(found.clockAheadMicros()).isEqualTo(-1_500L);
    assertThat(found).usingRecursiveComparison().ignoringFields("clocksAhead").isEqualTo(header);
  }

  @Example
  void forwardingChangesTheRouteAlone() throws Exception {
    Chunk chunk = codec.decode(codec.encode(Chunks.header(), Chunks.entries()));
    Route child = Chunks.ROUTE.children().get(0);

    byte[] wire = codec.forward(chunk, child);

    ChunkHeader header = chunk.header();
    assertThat(wire).isEqualTo(codec.encode(withRoute(header, child), codec.entries(chunk)));
    Chunk forwarded = codec.decode(wire);
    assertThat(forwarded.header().route()).isEqualTo(child);
    assertThat(forwarded.header().clocksAhead()).isEqualTo(Map.of("azure:ü", 0L));
    assertThat(Arrays.copyOfRange(forwarded.wire, forwarded.frameFrom, forwarded.frameEnd))
        .isEqualTo(Arrays.copyOfRange(chunk.wire, chunk.frameFrom, chunk.frameEnd));
  }

  private static ChunkHeader withRoute(ChunkHeader header, Route route) {
    return new ChunkHeader(
        header.id(),
        header.sender(),
        header.table(),
        header.log(),
        header.purpose(),
        header.plan(),
        header.stripe(),
        route,
        header.clocksAhead(),
        header.coverage(),
        header.sentAtMicros(),
        header.deadlineMs());
  }

  @Example
  void everyDamagedByteAndEveryCutIsNoticed() {
    byte[] wire = codec.encode(Chunks.header(), Chunks.entries());
    for (int at = 0; at < wire.length; at++) {
      for (int flipped : new int[] {1, 0x80, 0xFF}) {
        assertRefused(flipped(wire, at, flipped));
      }
      assertRefused(Arrays.copyOf(wire, at));
    }
    assertRefused(Arrays.copyOf(wire, wire.length + 1));
  }

  private void assertRefused(byte[] wire) {
    assertThatThrownBy(() -> codec.decode(wire)).isInstanceOf(DamagedChunkException.class);
  }

  /** A writer that is broken, not a network: the checksum is that of the damaged bytes. */
  @Example
  void nothingElseThanARefusalComesOfBytesThatAWriterSpoilt() throws Exception {
    byte[] wire = codec.encode(Chunks.header(), Chunks.entries());
    Chunk whole = codec.decode(wire);
    int spoilt = 0;
    for (int at = CHECKED_FROM; at < wire.length; at++) {
      for (int flipped : new int[] {1, 2, 0x80, 0xFF}) {
        List<ChunkEntry> found = found(sealed(flipped(wire, at, flipped)));
        spoilt += found == null ? 1 : 0;
        if (found != null && at >= whole.frameFrom) {
          // A reference to a like place: the content is the same.
          assertThat(found).usingRecursiveComparison().isEqualTo(codec.entries(whole));
        }
      }
      assertThat(found(sealed(Arrays.copyOf(wire, at)))).as("cut at %d", at).isNull();
    }
    assertThat(spoilt).isGreaterThan(wire.length);
    assertThat(found(sealed(Arrays.copyOf(wire, wire.length + 1)))).isNull();
  }

  /** The changes; null if the chunk is refused. */
  private List<ChunkEntry> found(byte[] wire) {
    try {
      return codec.entries(codec.decode(wire));
    } catch (DamagedChunkException e) {
      return null;
    }
  }

  private static byte[] flipped(byte[] wire, int at, int bits) {
    byte[] damaged = wire.clone();
    damaged[at] ^= (byte) bits;
    return damaged;
  }

  private static byte[] sealed(byte[] wire) {
    CRC32C crc = new CRC32C();
    crc.update(wire, CHECKED_FROM, wire.length - CHECKED_FROM);
    ByteBuffer.wrap(wire).order(ByteOrder.LITTLE_ENDIAN).putInt(CHECKSUM_AT, (int) crc.getValue());
    return wire;
  }

  @Example
  void sizesThatCannotBeAreRefusedBeforeAnythingIsUnpacked() throws Exception {
    byte[] wire = codec.encode(Chunks.header(), Chunks.entries());
    for (Map.Entry<String, Integer> size :
        Map.of("raw_bytes", 65 << 20, "change_count", 50).entrySet()) {
      GenericRecord record = generic(wire);
      record.put(size.getKey(), size.getValue());
      assertThatThrownBy(() -> codec.decode(encoded(record)))
          .isInstanceOf(DamagedChunkException.class)
          .hasMessageContaining(String.valueOf(size.getValue()));
    }
  }

  @Example
  void aRouteThatIsNoTreeIsRefused() throws Exception {
    Route twice = new Route("a", true, List.of(new Route("a", true, List.of())));
    assertThatThrownBy(() -> codec.encode(Chunks.header(Purpose.LIVE, twice, List.of()), List.of()))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("twice");
    Route deep = new Route("r", true, List.of());
    for (int i = 0; i < RouteCodec.DEPTH_MAX; i++) {
      deep = new Route("r" + i, false, List.of(deep));
    }
    ChunkHeader header = Chunks.header(Purpose.LIVE, deep, List.of());
    assertThatThrownBy(() -> codec.encode(header, List.of())).hasMessageContaining("deeper");

    GenericRecord record = generic(codec.encode(Chunks.header(), List.of()));
    GenericRecord route = (GenericRecord) record.get("route");
    GenericRecord child = (GenericRecord) ((List<?>) route.get("children")).get(0);
    child.put("region", "gcp:us-east1");
    assertThatThrownBy(() -> codec.decode(encoded(record)))
        .isInstanceOf(DamagedChunkException.class)
        .hasMessageContaining("gcp:us-east1' twice");
  }

  private static GenericRecord generic(byte[] wire) throws IOException {
    return new BinaryMessageDecoder<GenericRecord>(
            GenericData.get(), dev.freshet.schemas.Chunk.getClassSchema())
        .decode(wire);
  }

  private static byte[] encoded(GenericRecord record) throws IOException {
    ByteBuffer wire =
        new BinaryMessageEncoder<GenericRecord>(GenericData.get(), record.getSchema())
            .encode(record);
    byte[] bytes = new byte[wire.remaining()];
    wire.get(bytes);
    return sealed(bytes);
  }

  @Example
  void anEarlyChunkCoversNothing() {
    assertThatThrownBy(
            () -> Chunks.header(Purpose.EARLY, Chunks.ROUTE, List.of(new Covered(0, -1, 0))))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("early");
  }

  /** More than one block of each size of blocks, and content that LZ4 cannot shrink. */
  @Example
  void largeChunksRoundTrip() throws Exception {
    for (int bytes : new int[] {65_536, 300_000, 1 << 21, 9 << 20}) {
      byte[] value = new byte[bytes];
      new java.util.Random(bytes).nextBytes(value);
      Arrays.fill(value, bytes / 2, bytes, (byte) 1);
      KeyChange change = Chunks.vector("k", 1, 0);
      KeyChange large = new KeyChange("k", change.version(), 1, 2, change.kind(), false, 0, value);
      byte[] wire = codec.encode(Chunks.header(), List.of(new ChunkEntry(1, 2, large)));
      Chunk chunk = codec.decode(wire);
      assertThat(codec.entries(chunk).get(0).change().value()).isEqualTo(value);
      assertThat(chunk.wireBytes()).isBetween(bytes / 2, bytes * 6 / 10 + 1_000);
      assertThat(unpacked(Arrays.copyOfRange(wire, chunk.frameFrom, chunk.frameEnd)))
          .hasSize(chunk.rawBytes());
    }
  }

  @Example
  void clocksTakeNoPartInARoutesEquality() throws Exception {
    byte[] known = codec.encode(Chunks.header(), List.of());
    Chunk chunk = codec.decode(known);
    Map<Route, String> byRoute = new HashMap<>(Collections.singletonMap(Chunks.ROUTE, "x"));
    assertThat(byRoute).containsKey(chunk.header().route());
  }
}
