package dev.freshet.connectors.store;

import dev.freshet.connectors.format.AvroRecordTypeInfo;
import dev.freshet.connectors.format.DeploymentConfig;
import dev.freshet.connectors.format.TableConfig;
import dev.freshet.schemas.DeadLetter;
import dev.freshet.schemas.FeatureChange;
import dev.freshet.schemas.Operation;
import dev.freshet.schemas.Progress;
import dev.freshet.schemas.Stage;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.apache.flink.api.common.TaskInfo;
import org.apache.flink.api.common.operators.MailboxExecutor;
import org.apache.flink.api.common.serialization.SerializerConfigImpl;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.configuration.CheckpointingOptions;
import org.apache.flink.runtime.state.StateInitializationContext;
import org.apache.flink.runtime.state.StateSnapshotContext;
import org.apache.flink.streaming.api.operators.AbstractStreamOperator;
import org.apache.flink.streaming.api.operators.OneInputStreamOperator;
import org.apache.flink.streaming.api.operators.StreamOperatorParameters;
import org.apache.flink.streaming.api.watermark.Watermark;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;
import org.apache.flink.streaming.runtime.watermarkstatus.WatermarkStatus;
import org.apache.flink.util.OutputTag;

/**
 * Writes changes to the online store if they are newer than what is there, and emits each one once
 * the store has acknowledged it.
 *
 * <p>Delivery: at least once, and nothing is lost.
 *
 * <ul>
 *   <li>Writes are sent in batches of up to {@link WriteBuffer#BATCH_WRITES_MAX} or after {@link
 *       #LINGER_MS}, several at a time, and again for as long as it takes ({@link BatchSender}).
 *       Input stops once {@link BatchSender#BATCHES_IN_FLIGHT_MAX} batches wait for an answer.
 *   <li>A write that found its own version in the store is acknowledged like any other: an earlier
 *       attempt made it. One that found a newer version is counted and emits nothing, also where
 *       the table keeps it as an older version: the last change of a key in the log must be its
 *       newest, which is what compaction leaves for a restore.
 *   <li>A checkpoint does not wait for Redis: writes without an acknowledgement are in its state
 *       and are made again after a restore. A change that is emitted after the barrier belongs to
 *       the next checkpoint; if that fails, its write is in the restored state and emits it again.
 *   <li>A watermark is forwarded when all writes before it are acknowledged, and then reported as
 *       progress: whoever sees the progress finds those writes in the store.
 *   <li>A server that was restarted or emptied has lost data ({@link ServerIdentity}). Then the log
 *       of changes is written back ({@link StoreRecovery}); no progress is reported until that is
 *       done, nor while a server is away.
 * </ul>
 *
 * <p>All fields belong to the task's thread. What happens on the client's threads comes back as
 * mail.
 */
final class OnlineStoreWriter extends AbstractStreamOperator<FeatureChange>
    implements OneInputStreamOperator<FeatureChange, FeatureChange> {

  private static final long serialVersionUID = 1L;

  /** Side output of progress records. */
  static final OutputTag<Progress> PROGRESS =
      new OutputTag<>("store-progress", AvroRecordTypeInfo.PROGRESS);

  /** Side output of changes that cannot be stored. */
  static final OutputTag<DeadLetter> DEAD_LETTERS =
      new OutputTag<>("store-dead-letters", AvroRecordTypeInfo.DEAD_LETTER);

  /** A lone write waits this long for company. */
  static final long LINGER_MS = 5;

  private final TableConfig table;
  private final DeploymentConfig deployment;
  private final String definition;
  private final ChangeLog.Factory changeLogs;
  private final transient MailboxExecutor mailbox;

  private transient ListState<FeatureChange> pendingState;
  private transient ListState<String> identityState;
  private transient ListState<Long> writesState;

  private transient WriteBuffer<PendingChange> buffer;
  private transient WatermarkHold hold;
  private transient StoreIdentity identity;
  private transient TaskMail mail;
  private transient WriterMetrics metrics;
  private transient StoreRecovery recovery;
  private transient BatchSender<PendingChange> sender;

  /** Writes acknowledged since the job's first start, for progress records. */
  private transient long writesAcknowledged;

  private transient long reportedWatermarkMs;
  private transient boolean lingerTimerSet;

  OnlineStoreWriter(
      StreamOperatorParameters<FeatureChange> parameters,
      TableConfig table,
      DeploymentConfig deployment,
      ChangeLog.Factory changeLogs,
      String definition) {
    super(parameters);
    this.definition = definition;
    this.changeLogs = changeLogs;
    this.table = table;
    this.deployment = deployment;
    this.mailbox = parameters.getMailboxExecutor();
  }

  // Life cycle.

  @Override
  public void initializeState(StateInitializationContext context) throws Exception {
    super.initializeState(context);
    buffer = new WriteBuffer<>();
    hold = new WatermarkHold();
    reportedWatermarkMs = Long.MIN_VALUE;
    pendingState =
        context
            .getOperatorStateStore()
            .getListState(
                new ListStateDescriptor<>(
                    "pending-writes",
                    AvroRecordTypeInfo.FEATURE_CHANGE.createSerializer(
                        new SerializerConfigImpl())));
    identityState =
        context
            .getOperatorStateStore()
            .getUnionListState(new ListStateDescriptor<>("store-identity", Types.STRING));
    writesState =
        context
            .getOperatorStateStore()
            .getListState(new ListStateDescriptor<>("writes-acknowledged", Types.LONG));
    for (FeatureChange change : pendingState.get()) {
      buffer.add(pending(change));
    }
    for (long writes : writesState.get()) {
      writesAcknowledged += writes;
    }
    identity = StoreIdentity.join(identityState.get());
  }

  @Override
  public void open() throws Exception {
    super.open();
    metrics = new WriterMetrics(getMetricGroup(), table.table());
    mail = new TaskMail(mailbox, "freshet-store-waits-" + table.table());
    TaskInfo task = getRuntimeContext().getTaskInfo();
    recovery =
        new StoreRecovery(
            table,
            deployment,
            changeLogs,
            new StoreRecovery.Reader(
                task.getIndexOfThisSubtask(), task.getNumberOfParallelSubtasks()),
            CheckpointingOptions.isCheckpointingEnabled(
                getContainingTask().getEnvironment().getJobConfiguration()),
            identity,
            mail,
            metrics,
            new StoreEvents());
    sender =
        new BatchSender<>(
            buffer, recovery.store(), table.keepVersions(), mail, metrics, new Answers());
    recovery.start();
    sender.sendAll();
  }

  @Override
  public void finish() throws Exception {
    recovery.finish();
    while (!sender.isIdle() || !recovery.isComplete()) {
      sender.sendAll();
      mail.runNext();
    }
    release();
    super.finish();
  }

  @Override
  public void close() throws Exception {
    if (mail != null) {
      mail.close();
    }
    if (recovery != null) {
      recovery.close();
    }
    super.close();
  }

  // Checkpoints.

  @Override
  public void snapshotState(StateSnapshotContext context) throws Exception {
    super.snapshotState(context);
    pendingState.update(pendingWrites());
    identityState.update(List.of(identity.toState()));
    writesState.update(List.of(writesAcknowledged));
    recovery.checkpointStarted(context.getCheckpointId());
  }

  /** Changes whose writes are not acknowledged. */
  List<FeatureChange> pendingWrites() {
    return sender.pending().stream().map(PendingChange::change).toList();
  }

  WriterMetrics metrics() {
    return metrics;
  }

  @Override
  public void notifyCheckpointComplete(long checkpointId) throws Exception {
    super.notifyCheckpointComplete(checkpointId);
    recovery.checkpointCompleted(checkpointId);
  }

  // Input.

  @Override
  public void processElement(StreamRecord<FeatureChange> element) throws Exception {
    FeatureChange change = element.getValue();
    int valueBytes = change.getValue().remaining();
    if (change.getOperation() != Operation.DELETE && valueBytes > table.maxValueBytes()) {
      emitDeadLetter(
          change,
          "the value has "
              + valueBytes
              + " bytes, more than max_value_bytes, "
              + table.maxValueBytes()
              + "; return a smaller value or raise it");
      return;
    }
    buffer.add(pending(change));
    sender.send();
    while (sender.isFull()) {
      mail.runNext();
    }
    if (!buffer.isEmpty() && !lingerTimerSet) {
      lingerTimerSet = true;
      getProcessingTimeService()
          .registerTimer(
              getProcessingTimeService().getCurrentProcessingTime() + LINGER_MS,
              time -> onLingered());
    }
  }

  private PendingChange pending(FeatureChange change) {
    return new PendingChange(change, StoreWrite.of(change, deployment.redis()), hold.accept());
  }

  private void onLingered() {
    lingerTimerSet = false;
    sender.sendAll();
  }

  @Override
  public void processWatermark(Watermark watermark) {
    // Whoever waits for the progress should not wait for the linger time too.
    sender.sendAll();
    hold.hold(watermark);
    release();
  }

  @Override
  public void processWatermarkStatus(WatermarkStatus status) {
    hold.hold(status);
    release();
  }

  // Writing.

  /** Takes the store's answers. */
  private final class Answers implements BatchSender.Listener<PendingChange> {
    @Override
    public void settled(PendingChange write, int code) {
      settle(write, code);
    }

    @Override
    public void answered() {
      release();
    }
  }

  private void settle(PendingChange pending, int code) {
    FeatureChange change = pending.change();
    switch (code) {
      case WriteCode.WRITTEN -> {
        metrics.writes.inc();
        metrics.stalenessAtWriteMs.update(System.currentTimeMillis() - change.getEventTime());
        emit(change);
      }
      case WriteCode.DUPLICATE -> {
        metrics.writesDuplicate.inc();
        emit(change);
      }
      case WriteCode.KEPT_AS_OLDER -> metrics.writesKeptAsOlder.inc();
      case WriteCode.STALE -> metrics.writesStale.inc();
      case WriteCode.FOREIGN ->
          emitDeadLetter(
              change,
              "Redis key '"
                  + new String(pending.write().key(), StandardCharsets.UTF_8)
                  + "' holds something that is not a value of layout "
                  + StoreLayout.LAYOUT
                  + "; remove it, or give Freshet a key prefix of its own");
      default -> throw new IllegalStateException("the script answered " + code);
    }
    WatermarkHold.settle(pending.segment());
  }

  // Output.

  private void emit(FeatureChange change) {
    writesAcknowledged++;
    output.collect(new StreamRecord<>(change, change.getEventTime()));
  }

  private void emitDeadLetter(FeatureChange change, String reason) {
    metrics.deadLetters.inc();
    output.collect(
        DEAD_LETTERS,
        new StreamRecord<>(
            DeadLetter.newBuilder()
                .setTable(change.getTable())
                .setStage(Stage.STORE)
                .setReason(
                    "feature of key '"
                        + change.getKey()
                        + "' of table '"
                        + change.getTable()
                        + "', version "
                        + change.getVersionTimestamp()
                        + "."
                        + change.getVersionOrigin()
                        + ": "
                        + reason)
                .setKey(ByteBuffer.wrap(change.getKey().getBytes(StandardCharsets.UTF_8)))
                .setValue(change.getValue().duplicate())
                .setEventTime(change.getEventTime())
                .build()));
  }

  private void release() {
    if (recovery.isComplete()) {
      hold.release(this::releaseWatermark, this::releaseStatus);
    }
  }

  private void releaseWatermark(Watermark watermark) {
    if (watermark.getTimestamp() > reportedWatermarkMs) {
      reportedWatermarkMs = watermark.getTimestamp();
      output.collect(PROGRESS, new StreamRecord<>(progress(watermark)));
    }
    try {
      super.processWatermark(watermark);
    } catch (Exception e) {
      throw new IllegalStateException("cannot forward watermark " + watermark.getTimestamp(), e);
    }
  }

  private void releaseStatus(WatermarkStatus status) {
    try {
      super.processWatermarkStatus(status);
    } catch (Exception e) {
      throw new IllegalStateException("cannot forward watermark status " + status, e);
    }
  }

  private Progress progress(Watermark watermark) {
    return Progress.newBuilder()
        .setRegion(deployment.region())
        .setTable(table.table())
        .setSubtask(getRuntimeContext().getTaskInfo().getIndexOfThisSubtask())
        .setParallelism(getRuntimeContext().getTaskInfo().getNumberOfParallelSubtasks())
        .setWatermark(watermark.getTimestamp())
        .setReportedAt(System.currentTimeMillis())
        .setWrites(writesAcknowledged)
        .build();
  }

  // Servers.

  /** Hears of the store's servers. */
  private final class StoreEvents implements StoreRecovery.Listener {
    @Override
    public void connected() {
      register();
    }

    @Override
    public void changed() {
      release();
    }
  }

  /** Makes the table known to clients, also of a store that came back without it. */
  private void register() {
    TableRegistry.enter(recovery.store(), deployment.redis().prefix(), table.table(), definition);
  }
}
