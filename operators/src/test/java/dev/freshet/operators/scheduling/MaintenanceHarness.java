package dev.freshet.operators.scheduling;

import dev.freshet.connectors.format.AvroRecordTypeInfo;
import dev.freshet.connectors.record.Event;
import dev.freshet.connectors.record.Feedback;
import dev.freshet.connectors.record.RecordTypeInfo;
import dev.freshet.connectors.record.ValueKind;
import dev.freshet.connectors.record.Version;
import dev.freshet.operators.compute.ComputeOutcomes;
import dev.freshet.operators.compute.TaskIds;
import dev.freshet.schemas.DeadLetter;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.serialization.SerializerConfigImpl;
import org.apache.flink.api.common.typeutils.base.StringSerializer;
import org.apache.flink.metrics.Counter;
import org.apache.flink.metrics.Gauge;
import org.apache.flink.metrics.Metric;
import org.apache.flink.runtime.checkpoint.OperatorSubtaskState;
import org.apache.flink.runtime.clusterframework.types.ResourceID;
import org.apache.flink.runtime.event.WatermarkEvent;
import org.apache.flink.runtime.executiongraph.ExecutionAttemptID;
import org.apache.flink.runtime.metrics.groups.TaskManagerMetricGroup;
import org.apache.flink.runtime.metrics.util.TestingMetricRegistry;
import org.apache.flink.runtime.operators.testutils.MockEnvironment;
import org.apache.flink.runtime.operators.testutils.MockEnvironmentBuilder;
import org.apache.flink.streaming.api.operators.Output;
import org.apache.flink.streaming.api.operators.TwoInputStreamOperator;
import org.apache.flink.streaming.api.watermark.Watermark;
import org.apache.flink.streaming.runtime.streamrecord.LatencyMarker;
import org.apache.flink.streaming.runtime.streamrecord.RecordAttributes;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;
import org.apache.flink.streaming.runtime.watermarkstatus.WatermarkStatus;
import org.apache.flink.streaming.util.AbstractStreamOperatorTestHarness;
import org.apache.flink.util.OutputTag;

/**
 * The operator in Flink's test harness, with a feature function chained behind it as in the job:
 * collect returns when the function has computed the batch and its outcomes are on the board.
 */
final class MaintenanceHarness implements AutoCloseable {

  static final int MAX_PARALLELISM = 128;

  /** What a rate-limited function says. */
  static final long RETRY_AFTER_MS = 700;

  private static final OutputTag<DeadLetter> DEAD_LETTERS =
      new OutputTag<>("dead-letters", AvroRecordTypeInfo.DEAD_LETTER);

  /** How the fake feature function ends for a request. */
  enum Ending {
    OK,
    FAILED,
    /** To be tried again after {@link #RETRY_AFTER_MS}. */
    RATE_LIMITED,
    /** No outcome: the computation stays under way. */
    NONE
  }

  private static final class KeyedHarness extends AbstractStreamOperatorTestHarness<byte[]> {
    KeyedHarness(FeatureMaintenanceOperatorFactory factory, MockEnvironment environment)
        throws Exception {
      super(factory, environment);
      config.setStatePartitioner(0, value -> ((Event) value).key());
      config.setStatePartitioner(1, value -> ((Feedback) value).key());
      config.setStateKeySerializer(StringSerializer.INSTANCE);
      config.setupNetworkInputs(
          RecordTypeInfo.EVENT.createSerializer(new SerializerConfigImpl()),
          RecordTypeInfo.FEEDBACK.createSerializer(new SerializerConfigImpl()));
      config.serializeAllConfigs();
    }

    @SuppressWarnings("unchecked") // The factory's operator.
    TwoInputStreamOperator<Event, Feedback, byte[]> twoInputs() {
      return (TwoInputStreamOperator<Event, Feedback, byte[]>) operator;
    }
  }

  private final class Chain implements Output<StreamRecord<byte[]>> {
    @Override
    public void collect(StreamRecord<byte[]> element) {
      List<ComputeBatch.Request> requests = ComputeBatch.decode(element.getValue());
      batches.add(requests);
      for (ComputeBatch.Request request : requests) {
        Ending ending = function.apply(request);
        switch (ending) {
          case OK, FAILED -> report(request, ending == Ending.OK);
          case RATE_LIMITED -> reportRateLimited(request);
          case NONE -> {}
        }
      }
    }

    @Override
    public void emitWatermark(Watermark mark) {
      watermark = mark.getTimestamp();
    }

    @Override
    public void emitWatermark(WatermarkEvent mark) {}

    @Override
    public void emitWatermarkStatus(WatermarkStatus status) {}

    @Override
    public <X> void collect(OutputTag<X> tag, StreamRecord<X> element) {
      if (tag.equals(DEAD_LETTERS)) {
        letters.add((DeadLetter) element.getValue());
      }
    }

    @Override
    public void emitLatencyMarker(LatencyMarker marker) {}

    @Override
    public void emitRecordAttributes(RecordAttributes attributes) {}

    @Override
    public void close() {}
  }

  private final KeyedHarness harness;
  private final Map<String, Metric> metrics = new HashMap<>();
  private final List<List<ComputeBatch.Request>> batches = new ArrayList<>();
  private final List<DeadLetter> letters = new ArrayList<>();
  private Function<ComputeBatch.Request, Ending> function = request -> Ending.OK;
  private long computeNanos = 1_000;
  private long watermark = Long.MIN_VALUE;

  private MaintenanceHarness(TestSettings settings, Backend backend, int parallelism, int subtask)
      throws Exception {
    TestingMetricRegistry registry =
        TestingMetricRegistry.builder()
            .setRegisterConsumer((metric, name, group) -> metrics.put(name, metric))
            .build();
    MockEnvironment environment =
        new MockEnvironmentBuilder()
            .setTaskName("maintenance")
            .setManagedMemorySize(32 << 20)
            .setMaxParallelism(MAX_PARALLELISM)
            .setParallelism(parallelism)
            .setSubtaskIndex(subtask)
            .setMetricGroup(
                TaskManagerMetricGroup.createTaskManagerMetricGroup(
                        registry, "localhost", ResourceID.generate())
                    .addJob(new JobID(), "job")
                    .addTask(ExecutionAttemptID.randomId(), "maintenance"))
            .build();
    harness =
        new KeyedHarness(
            new FeatureMaintenanceOperatorFactory(settings.build(), DEAD_LETTERS), environment);
    harness.setStateBackend(backend.create());
    harness.setOutputCreator(ignored -> new Chain());
    harness.setup();
  }

  static MaintenanceHarness open(TestSettings settings, Backend backend) throws Exception {
    MaintenanceHarness opened = new MaintenanceHarness(settings, backend, 1, 0);
    opened.harness.initializeEmptyState();
    opened.harness.open();
    return opened;
  }

  static MaintenanceHarness openSubtask(
      TestSettings settings, Backend backend, int parallelism, int subtask) throws Exception {
    MaintenanceHarness opened = new MaintenanceHarness(settings, backend, parallelism, subtask);
    opened.harness.initializeEmptyState();
    opened.harness.open();
    return opened;
  }

  /** Restores one of so many subtasks from what the subtasks of an earlier run wrote. */
  static MaintenanceHarness restore(
      TestSettings settings,
      Backend backend,
      OperatorSubtaskState state,
      int oldParallelism,
      int parallelism,
      int subtask)
      throws Exception {
    MaintenanceHarness opened = new MaintenanceHarness(settings, backend, parallelism, subtask);
    opened.harness.initializeState(
        AbstractStreamOperatorTestHarness.repartitionOperatorState(
            state, MAX_PARALLELISM, oldParallelism, parallelism, subtask));
    opened.harness.open();
    return opened;
  }

  OperatorSubtaskState snapshot(long checkpoint) throws Exception {
    return harness.snapshot(checkpoint, checkpoint);
  }

  /** Decides how the feature function ends. */
  void function(Function<ComputeBatch.Request, Ending> newFunction) {
    function = newFunction;
  }

  /** Time that the feature function reports for each key. */
  void computeNanos(long nanos) {
    computeNanos = nanos;
  }

  /** Reports an outcome as the end of the chain does. */
  void report(ComputeBatch.Request request, boolean succeeded) {
    ComputeOutcomes.of(TaskIds.of(harness.getEnvironment(), "test_table"))
        .report(
            new ComputeOutcomes.Outcome(request.key(), request.version(), succeeded, computeNanos));
  }

  private void reportRateLimited(ComputeBatch.Request request) {
    ComputeOutcomes.of(TaskIds.of(harness.getEnvironment(), "test_table"))
        .report(
            ComputeOutcomes.Outcome.rateLimited(request.key(), request.version(), RETRY_AFTER_MS));
  }

  /** Windows that could not be computed. */
  List<DeadLetter> deadLetters() {
    return letters;
  }

  void event(String key, long timestampMs) throws Exception {
    event(scalar(key, timestampMs, 0, (double) timestampMs));
  }

  void event(Event event) throws Exception {
    StreamRecord<Event> element = new StreamRecord<>(event);
    harness.twoInputs().setKeyContextElement1(element);
    harness.twoInputs().processElement1(element);
  }

  void feedback(String key, Version version, double error, long timestampMs) throws Exception {
    feedback(new Feedback(key, version, error, timestampMs));
  }

  void feedback(Feedback feedback) throws Exception {
    StreamRecord<Feedback> element = new StreamRecord<>(feedback);
    harness.twoInputs().setKeyContextElement2(element);
    harness.twoInputs().processElement2(element);
  }

  void watermark(long timestampMs) throws Exception {
    harness.twoInputs().processWatermark1(new Watermark(timestampMs));
    harness.twoInputs().processWatermark2(new Watermark(timestampMs));
  }

  void watermark1(long timestampMs) throws Exception {
    harness.twoInputs().processWatermark1(new Watermark(timestampMs));
  }

  void processingTime(long timeMs) throws Exception {
    harness.setProcessingTime(timeMs);
  }

  int processingTimers() {
    return harness.getProcessingTimeService().getNumActiveTimers();
  }

  /** The watermark that went on downstream. */
  long emittedWatermark() {
    return watermark;
  }

  /** Batches since the start or the last {@link #forget}. */
  List<List<ComputeBatch.Request>> batches() {
    return batches;
  }

  /** All requests of the batches, in order. */
  List<ComputeBatch.Request> chosen() {
    return batches.stream().flatMap(List::stream).toList();
  }

  List<String> chosenKeys() {
    return chosen().stream().map(ComputeBatch.Request::key).toList();
  }

  ComputeBatch.Request last() {
    List<ComputeBatch.Request> chosen = chosen();
    return chosen.get(chosen.size() - 1);
  }

  void forget() {
    batches.clear();
  }

  long count(String metric) {
    return ((Counter) metrics.get(metric)).getCount();
  }

  double gauge(String metric) {
    return ((Number) ((Gauge<?>) metrics.get(metric)).getValue()).doubleValue();
  }

  static Event scalar(String key, long timestampMs, long id, double value) {
    return new Event(key, timestampMs, id, ValueKind.SCALAR, doubles(value));
  }

  static byte[] doubles(double... values) {
    ByteBuffer buffer =
        ByteBuffer.allocate(values.length * Double.BYTES).order(ByteOrder.LITTLE_ENDIAN);
    for (double value : values) {
      buffer.putDouble(value);
    }
    return buffer.array();
  }

  @Override
  public void close() throws Exception {
    harness.close();
  }
}
