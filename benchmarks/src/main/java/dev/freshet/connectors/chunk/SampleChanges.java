package dev.freshet.connectors.chunk;

import dev.freshet.connectors.format.SingleObjectCodec;
import dev.freshet.connectors.record.Version;
import dev.freshet.schemas.FeatureChange;
import dev.freshet.schemas.Operation;
import dev.freshet.schemas.Purpose;
import dev.freshet.schemas.ValueEncoding;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.SplittableRandom;

/**
 * Changes as a table of machines' features makes them, and how many bytes they have in a chunk:
 * prints one JSON object for each number of changes that it is given.
 */
public final class SampleChanges {

  static final String TABLE = "vm_cpu";

  private static final int SHARDS = 8;
  private static final int FLOATS = 32;
  private static final long START_MS = 1_780_000_000_000L;

  private static final SingleObjectCodec<FeatureChange> EVENTS =
      SingleObjectCodec.of(FeatureChange.class);

  private SampleChanges() {}

  /** Changes of as many keys, one every millisecond, over the shards at random. */
  static List<ChunkEntry> entries(int changes) {
    SplittableRandom random = new SplittableRandom(20_261_121);
    long[] offsets = new long[SHARDS];
    Arrays.fill(offsets, 1_000_000);
    List<ChunkEntry> entries = new ArrayList<>();
    for (int i = 0; i < changes; i++) {
      int shard = random.nextInt(SHARDS);
      long nowMs = START_MS + i;
      KeyChange change =
          new KeyChange(
              String.format(Locale.ROOT, "vm-%07d", random.nextInt(275_077)),
              new Version(nowMs * 1_000 + random.nextInt(1_000), 1 + shard),
              nowMs - 300 - random.nextInt(500),
              nowMs,
              ValueEncoding.FLOAT32_VECTOR.ordinal(),
              false,
              (float) random.nextDouble(),
              value(random));
      entries.add(new ChunkEntry(shard, offsets[shard]++, change));
    }
    return entries;
  }

  /** A daily course around a level, with noise: its neighbours differ little. */
  private static byte[] value(SplittableRandom random) {
    ByteBuffer value = ByteBuffer.allocate(FLOATS * Float.BYTES).order(ByteOrder.LITTLE_ENDIAN);
    double level = 5 + 60 * random.nextDouble();
    double phase = 2 * Math.PI * random.nextDouble();
    for (int i = 0; i < FLOATS; i++) {
      double course = Math.sin(phase + 2 * Math.PI * i / FLOATS);
      value.putFloat((float) (level * (1 + 0.1 * course) + 0.2 * random.nextDouble()));
    }
    return value.array();
  }

  /** The change as a record of the changes topic. */
  static byte[] event(KeyChange change) {
    return EVENTS.encode(
        FeatureChange.newBuilder()
            .setTable(TABLE)
            .setKey(change.key())
            .setVersionTimestamp(change.version().timestampMicros())
            .setVersionOrigin(change.version().origin())
            .setEventTime(change.eventTimeMs())
            .setComputedAt(change.computedAtMs())
            .setOperation(Operation.UPSERT)
            .setEncoding(ValueEncoding.FLOAT32_VECTOR)
            .setValue(ByteBuffer.wrap(change.value()))
            .setIsFirst(change.isFirst())
            .setRegretRemoved(change.regretRemoved())
            .build());
  }

  /** A header with a tree of six regions. */
  static ChunkHeader header() {
    List<Covered> coverage = new ArrayList<>();
    for (int shard = 0; shard < SHARDS; shard++) {
      coverage.add(new Covered(shard, 999_000, 1_000_500));
    }
    Route east =
        new Route(
            "aws:eu-west-1",
            true,
            List.of(Route.direct("aws:eu-central-1"), Route.direct("gcp:europe-west4")));
    Route west = new Route("gcp:us-west1", true, List.of(Route.direct("azure:japaneast")));
    return new ChunkHeader(
        1,
        "aws:us-east-1",
        TABLE,
        "u3Jm0Zk-QDqVbYk2cX9a1w",
        Purpose.LIVE,
        12,
        0,
        new Route("aws:us-west-2", false, List.of(east, west)),
        Map.of("aws:us-west-2", -250L, "aws:eu-west-1", 1_900L, "gcp:us-west1", 40L),
        coverage,
        START_MS * 1_000,
        START_MS + 60_000);
  }

  /** Takes numbers of changes. */
  public static void main(String[] arguments) throws Exception {
    for (String argument : arguments) {
      List<ChunkEntry> entries = entries(Integer.parseInt(argument));
      ChunkCodec codec = new ChunkCodec();
      Chunk chunk = codec.decode(codec.encode(header(), entries));
      long events = 0;
      for (ChunkEntry entry : entries) {
        events += event(entry.change()).length;
      }
      double changes = entries.size();
      System.out.printf(
          Locale.ROOT,
          "{\"changes\": %d, \"event\": %.1f, \"raw\": %.1f, \"wire\": %.1f}%n",
          entries.size(),
          events / changes,
          chunk.rawBytes() / changes,
          chunk.wireBytes() / changes);
    }
  }
}
