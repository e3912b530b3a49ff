package dev.freshet.operators.scheduling;

import dev.freshet.benchmarks.CountingOutput;
import dev.freshet.connectors.format.AvroRecordTypeInfo;
import dev.freshet.connectors.record.Event;
import dev.freshet.connectors.record.ValueKind;
import dev.freshet.operators.compute.ComputeOutcomes;
import dev.freshet.operators.compute.ComputeRequestEncoder;
import dev.freshet.operators.compute.TaskIds;
import org.apache.flink.streaming.api.operators.KeyedProcessOperator;
import org.apache.flink.streaming.api.operators.SimpleOperatorFactory;
import org.apache.flink.util.OutputTag;

/** The operators that are compared. */
final class Subjects {

  static final String TABLE = "benchmark";

  /** Small, so that 300 thousand windows fit into memory: the subject is the scheduler. */
  static final int WINDOW_POINTS = 8;

  private static final int ORIGIN = 1;
  private static final long BUNDLE_TARGET_MS = 50;
  private static final int BUNDLE_MAX_KEYS = 256;

  private Subjects() {}

  /**
   * The maintenance operator, with a function behind it that is said to take this share of time.
   */
  static OperatorHarness<byte[]> maintenance(String backend, double share) throws Exception {
    MaintenanceSettings settings =
        new MaintenanceSettings(
            TABLE,
            ORIGIN,
            ValueKind.SCALAR,
            new WindowExtent(WINDOW_POINTS, 0),
            1,
            new AlwaysScored(),
            false,
            new BudgetSettings.TimeShare(share),
            BUNDLE_TARGET_MS,
            BUNDLE_MAX_KEYS,
            ComputeRequestEncoder.WINDOW_BYTES_MAX);
    OperatorHarness<byte[]> harness =
        new OperatorHarness<>(
            new FeatureMaintenanceOperatorFactory(
                settings, new OutputTag<>("dead-letters", AvroRecordTypeInfo.DEAD_LETTER)),
            backend);
    harness.start(
        new ComputedAtOnce(ComputeOutcomes.of(TaskIds.of(harness.getEnvironment(), TABLE))));
    return harness;
  }

  /** The baseline. */
  static OperatorHarness<byte[]> counter(String backend) throws Exception {
    OperatorHarness<byte[]> harness =
        new OperatorHarness<>(
            SimpleOperatorFactory.of(
                new KeyedProcessOperator<String, Event, byte[]>(new CounterOperator())),
            backend);
    harness.start(new CountingOutput<>());
    return harness;
  }

  /**
   * Regret-proportional, without its cap for keys that have no value yet: with it, keys that were
   * never chosen would keep one priority and cost the scheduler nothing.
   */
  record AlwaysScored() implements SchedulingPolicy {

    private static final double DEFAULT_REGRET = 1e-3;
    private static final double MAX_REGRET = 1e12;

    @Override
    public String name() {
      return "always-scored";
    }

    @Override
    public double priority(KeyRecord record) {
      return Math.min(MAX_REGRET, record.regret() + DEFAULT_REGRET * record.pending());
    }
  }
}
