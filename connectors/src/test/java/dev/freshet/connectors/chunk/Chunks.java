package dev.freshet.connectors.chunk;

import dev.freshet.connectors.record.Version;
import dev.freshet.schemas.Purpose;
import dev.freshet.schemas.ValueEncoding;
import java.util.List;
import java.util.Map;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;

/** Chunks for tests: one to look at, and random ones. */
final class Chunks {

  /** Two hops below the region that the chunk is for; one clock is unknown. */
  static final Route ROUTE =
      new Route(
          "gcp:us-east1",
          false,
          List.of(
              new Route("aws:eu-west-1", true, List.of(new Route("azure:ü", true, List.of()))),
              new Route("aws:sa-east-1", true, List.of())));

  static final Map<String, Long> CLOCKS =
      Map.of("gcp:us-east1", -1_500L, "azure:ü", 0L, "aws:elsewhere", 7L);

  private Chunks() {}

  static ChunkHeader header(Purpose purpose, Route route, List<Covered> coverage) {
    return new ChunkHeader(
        -7,
        "aws:us-east-1",
        "vm_cpu",
        "Zk3x",
        purpose,
        3,
        1,
        route,
        CLOCKS,
        coverage,
        1_700_000_000_500_250L,
        1_700_000_060_000L);
  }

  static ChunkHeader header() {
    return header(Purpose.LIVE, ROUTE, List.of(new Covered(0, -1, 41), new Covered(3, 7, 8)));
  }

  static List<ChunkEntry> entries() {
    return List.of(
        new ChunkEntry(0, 40, vector("vm-1", 1_000_000, 8)),
        new ChunkEntry(0, 41, vector("vm-2", 1_000_250, 0)),
        new ChunkEntry(
            3,
            8,
            new KeyChange(
                "k😀", new Version(5, 2), 1, 2, KeyChange.DELETE, false, 0, new byte[0])));
  }

  static KeyChange vector(String key, long timestamp, int bytes) {
    byte[] value = new byte[bytes];
    for (int i = 0; i < bytes; i++) {
      value[i] = (byte) (i * 37);
    }
    return new KeyChange(
        key,
        new Version(timestamp, 65_535),
        timestamp / 1_000,
        timestamp / 1_000 + 1,
        ValueEncoding.FLOAT32_VECTOR.ordinal(),
        timestamp % 2 == 0,
        0.25f,
        value);
  }

  static Arbitrary<List<ChunkEntry>> anyEntries() {
    Arbitrary<ChunkEntry> entry =
        Combinators.combine(
                Arbitraries.integers().greaterOrEqual(0),
                Arbitraries.longs().greaterOrEqual(0),
                anyChange())
            .as(ChunkEntry::new);
    Arbitrary<ChunkEntry> ofFewShards =
        Combinators.combine(Arbitraries.integers().between(0, 3), entry)
            .as((shard, any) -> new ChunkEntry(shard, any.offset(), any.change()));
    return Arbitraries.oneOf(entry, ofFewShards).list().ofMaxSize(40);
  }

  static Arbitrary<KeyChange> anyChange() {
    Arbitrary<String> keys =
        Arbitraries.oneOf(
            Arbitraries.strings().ascii().ofMaxLength(30),
            Arbitraries.strings().withCharRange('\uE000', '\uFFFF').ofMaxLength(5),
            Arbitraries.of("", "schlüssel", "键", "😀\uFFFD"));
    Arbitrary<Version> versions =
        Combinators.combine(
                Arbitraries.longs().greaterOrEqual(0), Arbitraries.integers().between(0, 0xFFFF))
            .as(Version::new);
    Arbitrary<byte[]> values = Arbitraries.bytes().array(byte[].class).ofMaxSize(200);
    return Combinators.combine(
            keys,
            versions,
            Arbitraries.longs(),
            Arbitraries.longs(),
            Arbitraries.integers().between(KeyChange.DELETE, ValueEncoding.values().length - 1),
            Arbitraries.of(true, false),
            Arbitraries.floats(),
            values)
        .as(
            (key, version, eventTime, computedAt, kind, isFirst, regret, value) ->
                new KeyChange(
                    key,
                    version,
                    eventTime,
                    computedAt,
                    kind,
                    isFirst,
                    regret,
                    fitting(kind, value)));
  }

  /** As much of a value as one of the kind may have. */
  private static byte[] fitting(int kind, byte[] value) {
    int length = kind == KeyChange.DELETE ? 0 : kind == 1 ? value.length & ~3 : value.length;
    return java.util.Arrays.copyOf(value, length);
  }
}
