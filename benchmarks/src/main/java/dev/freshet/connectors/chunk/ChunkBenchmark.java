package dev.freshet.connectors.chunk;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.infra.Blackhole;

/** What a chunk costs to make, to unpack and to pass on; and what its change events cost to read. */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Fork(value = 1, jvmArgs = "-Xmx1g")
public class ChunkBenchmark {

  /** Number of changes in a chunk. */
  @Param({"1", "10", "1000"})
  public int changes;

  private final ChunkCodec codec = new ChunkCodec();
  private final ChunkHeader header = SampleChanges.header();
  private final Route child = header.route().children().get(0);
  private final ChangeReader reader = new ChangeReader(SampleChanges.TABLE);
  private final List<byte[]> events = new ArrayList<>();
  private List<ChunkEntry> entries;
  private byte[] wire;

  /** Makes the changes. */
  @Setup(Level.Trial)
  public void setUp() {
    entries = SampleChanges.entries(changes);
    wire = codec.encode(header, entries);
    for (ChunkEntry entry : entries) {
      events.add(SampleChanges.event(entry.change()));
    }
  }

  /** Makes a chunk. */
  @Benchmark
  public byte[] encode() {
    return codec.encode(header, entries);
  }

  /** Checks a chunk and unpacks its changes. */
  @Benchmark
  public List<ChunkEntry> decode() throws DamagedChunkException {
    return codec.entries(codec.decode(wire));
  }

  /** Checks a chunk and makes it one for the next hop, as a relay does. */
  @Benchmark
  public byte[] forward() throws DamagedChunkException {
    return codec.forward(codec.decode(wire), child);
  }

  /** Reads as many change events. */
  @Benchmark
  public void read(Blackhole sink) throws BadChangeException {
    for (byte[] event : events) {
      sink.consume(reader.read(event));
    }
  }
}
