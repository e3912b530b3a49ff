package dev.freshet.operators.scheduling;

import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OperationsPerInvocation;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;

/**
 * Events a second through one subtask. Every key is known before the clock starts. The maintenance
 * operator also chooses keys meanwhile, each of which reads, trims and encodes its window.
 */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.Throughput)
@OutputTimeUnit(TimeUnit.SECONDS)
@Fork(
    value = 1,
    jvmArgs = {
      "-Xmx6g",
      "--add-opens=java.base/java.util=ALL-UNNAMED",
      "--add-opens=java.base/java.lang=ALL-UNNAMED"
    })
public class OperatorBenchmark {

  /** Between two looks at the clock; a task reads its timers between records, too. */
  private static final int EVENTS = 100;

  /** Batches of 50 ms, with 50 ms between them: up to 1,000 choices a second. */
  private static final double SHARE = 0.5;

  /** What is measured: the maintenance operator or the baseline. */
  @Param({"maintenance", "counter"})
  public String operator;

  /** Where keyed state is. */
  @Param({"heap", "rocksdb"})
  public String backend;

  /** Number of keys. */
  @Param({"10000", "300000"})
  public int keys;

  private OperatorHarness<byte[]> harness;
  private Events events;

  /** Opens the operator and makes it know every key. */
  @Setup(Level.Trial)
  public void setUp() throws Exception {
    harness =
        operator.equals("counter")
            ? Subjects.counter(backend)
            : Subjects.maintenance(backend, SHARE);
    events = new Events(keys);
    for (int key = 0; key < keys; key++) {
      harness.process(events.of(key));
    }
  }

  /** Hands events over, then lets the loop choose what its budget permits. */
  @Benchmark
  @OperationsPerInvocation(EVENTS)
  public void event() throws Exception {
    for (int i = 0; i < EVENTS; i++) {
      harness.process(events.next());
    }
    harness.setProcessingTime(System.currentTimeMillis());
  }

  /** Closes the operator. */
  @TearDown(Level.Trial)
  public void tearDown() throws Exception {
    harness.close();
  }
}
