package dev.freshet.operators.scheduling;

import dev.freshet.benchmarks.CountingOutput;
import dev.freshet.connectors.record.Event;
import dev.freshet.connectors.record.ValueKind;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.SplittableRandom;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeutils.base.array.BytePrimitiveArraySerializer;
import org.apache.flink.core.execution.SavepointFormatType;
import org.apache.flink.runtime.checkpoint.Checkpoints;
import org.apache.flink.runtime.checkpoint.OperatorState;
import org.apache.flink.runtime.checkpoint.OperatorSubtaskState;
import org.apache.flink.runtime.checkpoint.SavepointType;
import org.apache.flink.runtime.checkpoint.metadata.CheckpointMetadata;
import org.apache.flink.runtime.jobgraph.OperatorID;
import org.apache.flink.runtime.state.KeyGroupRangeAssignment;
import org.apache.flink.runtime.state.storage.FileSystemCheckpointStorage;
import org.apache.flink.shaded.guava33.com.google.common.hash.Hashing;
import org.apache.flink.streaming.api.operators.AbstractStreamOperator;
import org.apache.flink.streaming.api.operators.OneInputStreamOperator;
import org.apache.flink.streaming.api.operators.SimpleOperatorFactory;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;

/**
 * Writes a savepoint in which every key of a table has a full window, none of it computed yet:
 * hundreds of millions of readings that would take a benchmark hours through Kafka.
 *
 * <p>It is a savepoint in RocksDB's own format, of a job with one subtask, with nothing in it but
 * the state of the maintenance operator. An operator that only fills that state writes it.
 *
 * <p>A key's readings are those of a real series from some row on, with noise. Windows hold up to a
 * quarter more than the function sees, as after days in the running job, where they are trimmed now
 * and then.
 */
public final class FilledWindows {

  private static final String UID = "feature-maintenance";
  private static final double MAX_PERCENT = 100;

  /** The event that makes the operator fill a key's window; only its key counts. */
  private static final byte[] NOTHING = new byte[Double.BYTES];

  private final double[] readings;
  private final int series;
  private final int[] sources;
  private final int points;
  private final long newestMs;
  private final long stepMs;
  private final double noise;

  /**
   * What the windows are made of.
   *
   * @param readings doubles [rows, series], percent
   * @param sources each key's series and the row of its oldest reading, ints [keys, 2]
   * @param points points of a window
   * @param newestMs event time of the first key's newest reading; the others' follow, spread evenly
   *     over a step
   * @param stepMs distance of two readings of a key
   * @param noise standard deviation of the noise, percent
   */
  private FilledWindows(
      ByteBuffer readings,
      int series,
      ByteBuffer sources,
      int points,
      long newestMs,
      long stepMs,
      double noise) {
    this.readings = new double[readings.remaining() / Double.BYTES];
    readings.asDoubleBuffer().get(this.readings);
    this.series = series;
    this.sources = new int[sources.remaining() / Integer.BYTES];
    sources.asIntBuffer().get(this.sources);
    this.points = points;
    this.newestMs = newestMs;
    this.stepMs = stepMs;
    this.noise = noise;
  }

  /**
   * Takes the savepoint's folder, the files of readings and of sources, and the other fields of the
   * constructor in their order.
   */
  public static void main(String[] arguments) throws Exception {
    FilledWindows windows =
        new FilledWindows(
            read(arguments[1]),
            Integer.parseInt(arguments[2]),
            read(arguments[3]),
            Integer.parseInt(arguments[4]),
            Long.parseLong(arguments[5]),
            Long.parseLong(arguments[6]),
            Double.parseDouble(arguments[7]));
    windows.write(Path.of(arguments[0]));
  }

  private static ByteBuffer read(String file) throws IOException {
    return ByteBuffer.wrap(Files.readAllBytes(Path.of(file))).order(ByteOrder.LITTLE_ENDIAN);
  }

  private static String name(int key) {
    return String.format("vm-%06d", key);
  }

  private static int keyGroup(String name) {
    return KeyGroupRangeAssignment.assignToKeyGroup(name, OperatorHarness.MAX_PARALLELISM);
  }

  private void write(Path folder) throws Exception {
    Files.createDirectories(folder);
    OperatorHarness<byte[]> harness =
        new OperatorHarness<>(SimpleOperatorFactory.of(new Fill()), "rocksdb");
    harness.setCheckpointStorage(new FileSystemCheckpointStorage(folder.toUri()));
    harness.start(new CountingOutput<>());
    // In the order of RocksDB's keys, so that its files do not overlap and need no merging.
    List<String> names =
        IntStream.range(0, sources.length / 2)
            .mapToObj(FilledWindows::name)
            .sorted(Comparator.comparingInt(FilledWindows::keyGroup).thenComparing(name -> name))
            .toList();
    for (String name : names) {
      harness.process(new Event(name, newestMs, 0, ValueKind.SCALAR, NOTHING));
    }
    OperatorSubtaskState state =
        harness
            .snapshotWithLocalState(
                1, newestMs, SavepointType.savepoint(SavepointFormatType.NATIVE))
            .getJobManagerOwnedState();
    harness.close();
    moveFilesUp(folder);
    writeMetadata(folder.resolve("_metadata"), state);
  }

  /** The metadata names files beside itself; the harness writes them as those of a checkpoint. */
  private static void moveFilesUp(Path folder) throws IOException {
    try (Stream<Path> found = Files.walk(folder)) {
      for (Path file : found.filter(Files::isRegularFile).toList()) {
        Files.move(file, folder.resolve(file.getFileName()));
      }
    }
  }

  private static void writeMetadata(Path file, OperatorSubtaskState state) throws IOException {
    // As Flink makes an operator's id from its uid.
    byte[] id = Hashing.murmur3_128(0).hashString(UID, StandardCharsets.UTF_8).asBytes();
    OperatorState operator =
        new OperatorState(UID, UID, new OperatorID(id), 1, OperatorHarness.MAX_PARALLELISM);
    operator.putState(0, state);
    try (OutputStream out = Files.newOutputStream(file)) {
      Checkpoints.storeCheckpointMetadata(
          new CheckpointMetadata(1, List.of(operator), List.of()), out);
    }
  }

  private List<byte[]> window(int key) {
    SplittableRandom random = new SplittableRandom(key);
    int entries = points + key % (points / 4);
    long newest = newestMs + key * stepMs / (sources.length / 2);
    int source = sources[2 * key];
    int firstRow = sources[2 * key + 1];
    int rows = readings.length / series;
    List<byte[]> window = new ArrayList<>(entries);
    for (int i = 0; i < entries; i++) {
      double reading = readings[(firstRow + i) % rows * series + source];
      double noisy = reading + noise * random.nextGaussian();
      byte[] value =
          ByteBuffer.allocate(Double.BYTES)
              .order(ByteOrder.LITTLE_ENDIAN)
              .putDouble(Math.max(0, Math.min(MAX_PERCENT, noisy)))
              .array();
      long time = newest - (entries - 1 - i) * stepMs;
      window.add(RawWindow.encode(new Event("", time, 0, ValueKind.SCALAR, value)));
    }
    return window;
  }

  /** Puts a full window and its record into the state that the maintenance operator reads. */
  private final class Fill extends AbstractStreamOperator<byte[]>
      implements OneInputStreamOperator<Event, byte[]> {

    private static final long serialVersionUID = 1L;

    private transient ListState<byte[]> windows;
    private transient ValueState<KeyRecord> records;

    @Override
    public void open() throws Exception {
      super.open();
      windows =
          getPartitionedState(
              new ListStateDescriptor<>("raw-window", BytePrimitiveArraySerializer.INSTANCE));
      records =
          getPartitionedState(new ValueStateDescriptor<>("key-record", new KeyRecordSerializer()));
    }

    @Override
    public void processElement(StreamRecord<Event> element) throws Exception {
      int key = Integer.parseInt(element.getValue().key().substring("vm-".length()));
      List<byte[]> window = window(key);
      windows.update(window);
      KeyRecord record = new KeyRecord();
      record.entries = window.size();
      record.trimAt = 2 * points;
      record.newest = RawWindow.timestamp(window.get(window.size() - 1));
      record.trimmedThrough = RawWindow.timestamp(window.get(0)) - 1;
      record.eventPending(record.newest);
      records.update(record);
    }
  }
}
