package dev.freshet.connectors.store;

import dev.freshet.connectors.format.AvroRecordTypeInfo;
import dev.freshet.connectors.format.DeploymentConfig;
import dev.freshet.connectors.format.TableConfig;
import dev.freshet.connectors.testing.Await;
import dev.freshet.connectors.testing.TestConfigs;
import dev.freshet.schemas.DeadLetter;
import dev.freshet.schemas.FeatureChange;
import dev.freshet.schemas.Progress;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.Callable;
import org.apache.flink.api.common.serialization.SerializerConfigImpl;
import org.apache.flink.configuration.CheckpointingOptions;
import org.apache.flink.runtime.checkpoint.OperatorSubtaskState;
import org.apache.flink.streaming.api.watermark.Watermark;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;
import org.apache.flink.streaming.runtime.tasks.mailbox.Mail;
import org.apache.flink.streaming.runtime.tasks.mailbox.TaskMailbox;
import org.apache.flink.streaming.util.OneInputStreamOperatorTestHarness;
import org.apache.flink.util.OutputTag;

/** A writer in Flink's harness, whose mail is run while a test waits. */
final class WriterHarness implements AutoCloseable {

  private static final long FIRST_CHECKPOINT = 100;

  final MemoryChangeLog log = new MemoryChangeLog();
  final OneInputStreamOperatorTestHarness<FeatureChange, FeatureChange> flink;
  private long processingTimeMs;
  private long checkpoints;

  private WriterHarness(String tableJson, String deploymentJson, int parallelism, int subtask)
      throws Exception {
    flink =
        new OneInputStreamOperatorTestHarness<>(
            new OnlineStoreWriterFactory(
                TableConfig.parse(tableJson),
                DeploymentConfig.parse(deploymentJson),
                (table, deployment, readingSubtask, readers) -> log,
                tableJson),
            128,
            parallelism,
            subtask);
    // So that the writer waits for checkpoints where it would in a job with them.
    flink
        .getEnvironment()
        .getJobConfiguration()
        .set(CheckpointingOptions.CHECKPOINTING_INTERVAL, Duration.ofSeconds(1));
    flink.setup(AvroRecordTypeInfo.FEATURE_CHANGE.createSerializer(new SerializerConfigImpl()));
  }

  /** A writer without earlier state. */
  static WriterHarness open(String deploymentJson) throws Exception {
    return open(TestConfigs.table(), deploymentJson, null, 1, 0);
  }

  static WriterHarness open(
      String tableJson,
      String deploymentJson,
      OperatorSubtaskState state,
      int parallelism,
      int subtask)
      throws Exception {
    WriterHarness harness = new WriterHarness(tableJson, deploymentJson, parallelism, subtask);
    if (state != null) {
      harness.flink.initializeState(state);
    }
    harness.flink.open();
    return harness;
  }

  void write(FeatureChange change) throws Exception {
    flink.processElement(new StreamRecord<>(change, change.getEventTime()));
  }

  /** Lets the linger time pass once. */
  void linger() throws Exception {
    processingTimeMs += OnlineStoreWriter.LINGER_MS;
    flink.setProcessingTime(processingTimeMs);
  }

  /** Runs the mail that is there. */
  void runMail() throws Exception {
    for (Optional<Mail> mail = take(); mail.isPresent(); mail = take()) {
      mail.get().run();
    }
  }

  private Optional<Mail> take() {
    return flink.getTaskMailbox().tryTake(TaskMailbox.MIN_PRIORITY);
  }

  /** Runs timers and mail until the condition holds. */
  void await(String what, Callable<Boolean> condition) throws Exception {
    Await.until(
        what,
        () -> {
          linger();
          runMail();
          return condition.call();
        });
  }

  void awaitChanges(int count) throws Exception {
    await(count + " changes are emitted", () -> changes().size() >= count);
  }

  /** Completes so many checkpoints, one after the other. */
  void completeCheckpoints(int count) throws Exception {
    for (int i = 0; i < count; i++) {
      checkpoints++;
      flink.snapshot(FIRST_CHECKPOINT + checkpoints, checkpoints);
      flink.notifyOfCompletedCheckpoint(FIRST_CHECKPOINT + checkpoints);
    }
  }

  /** Writes without an acknowledgement, as a snapshot would hold them. */
  int pending() {
    return ((OnlineStoreWriter) flink.getOperator()).pendingWrites().size();
  }

  /** Batches that were sent again. */
  long retries() {
    return metrics().storeRetries.getCount();
  }

  WriterMetrics metrics() {
    return ((OnlineStoreWriter) flink.getOperator()).metrics();
  }

  List<FeatureChange> changes() {
    return flink.extractOutputValues();
  }

  List<Long> watermarks() {
    return flink.getOutput().stream()
        .filter(Watermark.class::isInstance)
        .map(watermark -> ((Watermark) watermark).getTimestamp())
        .toList();
  }

  List<Progress> progress() {
    return sideOutput(OnlineStoreWriter.PROGRESS);
  }

  List<DeadLetter> deadLetters() {
    return sideOutput(OnlineStoreWriter.DEAD_LETTERS);
  }

  private <T> List<T> sideOutput(OutputTag<T> tag) {
    Collection<StreamRecord<T>> records = flink.getSideOutput(tag);
    return records == null ? List.of() : records.stream().map(StreamRecord::getValue).toList();
  }

  @Override
  public void close() throws Exception {
    // Not the harness' own close, which finishes first: a test's end is the task's failure.
    flink.getOperator().close();
    flink.getEnvironment().close();
  }
}
