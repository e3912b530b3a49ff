package dev.freshet.operators.scheduling;

import dev.freshet.benchmarks.CountingOutput;
import dev.freshet.connectors.record.Event;
import java.util.Locale;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.typeutils.base.array.BytePrimitiveArraySerializer;
import org.apache.flink.core.memory.DataOutputSerializer;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.streaming.api.operators.KeyedProcessOperator;
import org.apache.flink.streaming.api.operators.SimpleOperatorFactory;
import org.apache.flink.util.Collector;

/**
 * Bytes for each key, of one subject in a JVM of its own, so that nothing of another is counted:
 *
 * <ul>
 *   <li>{@code maintenance}: heap of the operator with every key pending
 *   <li>{@code windows}: heap of an operator that keeps the same raw windows in the same state
 *       backend, and nothing else; the difference is what the scheduler adds
 *   <li>{@code timers}, {@code objects}, {@code tree-set}: heap of a {@link TimerQueue} alone
 *   <li>{@code serialized}: the record as RocksDB and checkpoints hold it
 * </ul>
 */
public final class StateFootprint {

  private static final int POINTS = 2;
  private static final int COLLECTIONS = 4;

  /** Small, so that nothing is chosen meanwhile. */
  private static final double SHARE = 1e-6;

  private StateFootprint() {}

  /** Takes the subject and the number of keys; prints a number. */
  public static void main(String[] arguments) throws Exception {
    int keys = Integer.parseInt(arguments[1]);
    double bytes =
        switch (arguments[0]) {
          case "maintenance" -> heapPerKey(Subjects.maintenance("heap", SHARE), keys);
          case "windows" -> heapPerKey(windowsOnly(), keys);
          case "serialized" -> serializedBytes();
          default -> queueHeapPerKey(arguments[0], keys);
        };
    System.out.printf(Locale.ROOT, "%.1f%n", bytes);
  }

  /** Heap that the operator holds for each key, bytes; the keys' names are not counted. */
  private static double heapPerKey(OperatorHarness<byte[]> harness, int keys) throws Exception {
    Events events = new Events(keys);
    long before = usedBytes();
    for (int point = 0; point < POINTS; point++) {
      for (int key = 0; key < keys; key++) {
        harness.process(events.of(key));
      }
    }
    long after = usedBytes();
    harness.close();
    return (after - before) / (double) events.keyCount();
  }

  private static double queueHeapPerKey(String queue, int keys) {
    String[] names = Events.keys(keys);
    long before = usedBytes();
    TimerQueue timers = TimerQueue.of(queue);
    for (int i = 0; i < keys; i++) {
      timers.schedule(names[i], i, 0);
    }
    double bytes = (usedBytes() - before) / (double) keys;
    if (!names[keys - 1].equals(timers.poll())) {
      throw new IllegalStateException(queue + " fires another key than the one scheduled highest");
    }
    return bytes;
  }

  private static int serializedBytes() throws Exception {
    DataOutputSerializer out = new DataOutputSerializer(256);
    new KeyRecordSerializer().serialize(new KeyRecord(), out);
    return out.length();
  }

  @SuppressWarnings("SystemGc") // Measuring the heap is what this program does.
  private static long usedBytes() {
    long used = Long.MAX_VALUE;
    for (int i = 0; i < COLLECTIONS; i++) {
      System.gc();
      Runtime runtime = Runtime.getRuntime();
      used = Math.min(used, runtime.totalMemory() - runtime.freeMemory());
    }
    return used;
  }

  private static OperatorHarness<byte[]> windowsOnly() throws Exception {
    OperatorHarness<byte[]> harness =
        new OperatorHarness<>(
            SimpleOperatorFactory.of(
                new KeyedProcessOperator<String, Event, byte[]>(new WindowsOnly())),
            "heap");
    harness.start(new CountingOutput<>());
    return harness;
  }

  /** Keeps the raw windows as the maintenance operator does, and nothing else. */
  private static final class WindowsOnly extends KeyedProcessFunction<String, Event, byte[]> {

    private static final long serialVersionUID = 1L;

    private transient ListState<byte[]> windows;

    @Override
    public void open(OpenContext context) {
      windows =
          getRuntimeContext()
              .getListState(
                  new ListStateDescriptor<>("raw-window", BytePrimitiveArraySerializer.INSTANCE));
    }

    @Override
    public void processElement(Event event, Context context, Collector<byte[]> out)
        throws Exception {
      windows.add(RawWindow.encode(event));
    }
  }
}
