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
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
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
import org.apache.flink.util.concurrent.ExecutorThreadFactory;
import org.apache.flink.util.function.ThrowingRunnable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Writes changes to the online store if they are newer than what is there, and emits each one once
 * the store has acknowledged it.
 *
 * <p>Delivery: at least once, and nothing is lost.
 *
 * <ul>
 *   <li>Writes are sent in batches of up to {@link WriteBuffer#BATCH_WRITES_MAX} or after {@link
 *       #LINGER_MS}, several at a time. A batch that fails is sent again, with growing waits, for
 *       as long as it takes; input stops meanwhile once {@link #BATCHES_IN_FLIGHT_MAX} batches
 *       wait. A failure that does not pass, such as a wrong password, fails the job.
 *   <li>A write that found its own version in the store is acknowledged like any other: an earlier
 *       attempt made it. One that found a newer version is counted and emits nothing.
 *   <li>A checkpoint does not wait for Redis: writes without an acknowledgement are in its state
 *       and are made again after a restore. A change that is emitted after the barrier belongs to
 *       the next checkpoint; if that fails, its write is in the restored state and emits it again.
 *   <li>A watermark is forwarded when all writes before it are acknowledged, and then reported as
 *       progress: whoever sees the progress finds those writes in the store.
 *   <li>A server with another run id than before may have lost data. Then the log of changes is
 *       written back ({@link StoreRestorer}); no progress is reported until that is done, nor while
 *       a server is away. It covers a loss that comes with a restart of Redis, not a {@code
 *       FLUSHALL}.
 * </ul>
 *
 * <p>All fields belong to the task's thread. What happens on the client's threads comes back as
 * mail.
 */
final class OnlineStoreWriter extends AbstractStreamOperator<FeatureChange>
    implements OneInputStreamOperator<FeatureChange, FeatureChange> {

  private static final long serialVersionUID = 1L;
  private static final Logger LOG = LoggerFactory.getLogger(OnlineStoreWriter.class);

  /** Side output of progress records. */
  static final OutputTag<Progress> PROGRESS =
      new OutputTag<>("store-progress", AvroRecordTypeInfo.PROGRESS);

  /** Side output of changes that cannot be stored. */
  static final OutputTag<DeadLetter> DEAD_LETTERS =
      new OutputTag<>("store-dead-letters", AvroRecordTypeInfo.DEAD_LETTER);

  /** Hash of table name to definition in JSON, below the deployment's key prefix. */
  static final String REGISTRY = "freshet:tables";

  /** A lone write waits this long for company. */
  static final long LINGER_MS = 5;

  /** Enough to keep Redis busy over a round trip. */
  static final int BATCHES_IN_FLIGHT_MAX = 4;

  /** How long changes may be on their way to Kafka where no checkpoint tells. */
  static final long RESTORE_SETTLE_MS = 10_000;

  private final TableConfig table;
  private final DeploymentConfig deployment;
  private final String definition;
  private final ChangeLog.Factory changeLogs;
  private final transient MailboxExecutor mailbox;

  private transient ListState<FeatureChange> pendingState;
  private transient ListState<String> identityState;
  private transient ListState<Long> writesState;

  private transient RedisStore store;
  private transient ScheduledExecutorService waiting;
  private transient WriterMetrics metrics;
  private transient WriteBuffer buffer;
  private transient Set<WriteBatch> inFlight;
  private transient WatermarkHold hold;
  private transient StoreIdentity identity;
  private transient StoreRestorer restorer;
  private transient SettledCheckpoint settledCheckpoint;

  /** Writes acknowledged since the job's first start, for progress records. */
  private transient long writesAcknowledged;

  private transient long reportedWatermarkMs;
  private transient boolean lingerTimerSet;
  private transient boolean lingered;
  private transient boolean connecting;
  private transient boolean checkpointing;

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
    buffer = new WriteBuffer();
    inFlight = new LinkedHashSet<>();
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
    checkpointing =
        CheckpointingOptions.isCheckpointingEnabled(
            getContainingTask().getEnvironment().getJobConfiguration());
    waiting =
        Executors.newSingleThreadScheduledExecutor(
            new ExecutorThreadFactory("freshet-store-waits-" + table.table()));
    store = new RedisStore(deployment.redis(), new ServerEvents());
    if (identity.isRestorePending()) {
      startRestoring("a restore was under way when the job stopped");
    }
    connect(0);
    lingered = true;
    send();
  }

  @Override
  public void finish() throws Exception {
    if (settledCheckpoint != null) {
      // No checkpoint completes while the task finishes; what is under way arrives by time.
      StoreRestorer current = restorer;
      waiting.schedule(current::settle, RESTORE_SETTLE_MS, TimeUnit.MILLISECONDS);
    }
    while (!buffer.isEmpty() || !inFlight.isEmpty() || !mayRelease()) {
      lingered = true;
      send();
      mailbox.yield();
    }
    release();
    super.finish();
  }

  @Override
  public void close() throws Exception {
    if (restorer != null) {
      restorer.stop();
    }
    if (waiting != null) {
      waiting.shutdownNow();
    }
    if (store != null) {
      store.close();
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
    if (settledCheckpoint != null) {
      settledCheckpoint.started(context.getCheckpointId());
    }
  }

  /** Changes whose writes are not acknowledged. */
  List<FeatureChange> pendingWrites() {
    List<FeatureChange> pending = new ArrayList<>();
    inFlight.forEach(batch -> batch.writes().forEach(write -> pending.add(write.change())));
    buffer.waiting().forEach(write -> pending.add(write.change()));
    return pending;
  }

  WriterMetrics metrics() {
    return metrics;
  }

  @Override
  public void notifyCheckpointComplete(long checkpointId) throws Exception {
    super.notifyCheckpointComplete(checkpointId);
    if (settledCheckpoint != null && settledCheckpoint.completed(checkpointId)) {
      settledCheckpoint = null;
      restorer.settle();
    }
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
    send();
    while (buffer.isFull() && inFlight.size() >= BATCHES_IN_FLIGHT_MAX) {
      mailbox.yield();
    }
    if (!buffer.isEmpty() && !lingerTimerSet) {
      lingerTimerSet = true;
      getProcessingTimeService()
          .registerTimer(
              getProcessingTimeService().getCurrentProcessingTime() + LINGER_MS,
              time -> onLingered());
    }
  }

  private PendingWrite pending(FeatureChange change) {
    return new PendingWrite(change, StoreWrite.of(change, deployment.redis()), hold.accept());
  }

  private void onLingered() {
    lingerTimerSet = false;
    lingered = true;
    send();
  }

  @Override
  public void processWatermark(Watermark watermark) {
    // Whoever waits for the progress should not wait for the linger time too.
    lingered = true;
    send();
    hold.hold(watermark);
    release();
  }

  @Override
  public void processWatermarkStatus(WatermarkStatus status) {
    hold.hold(status);
    release();
  }

  // Writing.

  /** Sends what is due: full batches, and after the linger time all that waits. */
  private void send() {
    while (!buffer.isEmpty()
        && inFlight.size() < BATCHES_IN_FLIGHT_MAX
        && (lingered || buffer.isFull())) {
      WriteBatch batch = buffer.next();
      inFlight.add(batch);
      attempt(batch);
    }
    if (buffer.isEmpty()) {
      lingered = false;
    }
  }

  private void attempt(WriteBatch batch) {
    store
        .write(batch.sent(System.nanoTime()))
        .thenAccept(outcome -> mail("take the store's answer", () -> onAnswer(batch, outcome)));
  }

  private void onAnswer(WriteBatch batch, WriteOutcome outcome) {
    metrics.storeLatencyMicros.update(
        TimeUnit.NANOSECONDS.toMicros(System.nanoTime() - batch.sentNanos()));
    List<PendingWrite> unanswered = new ArrayList<>();
    List<PendingWrite> sent = batch.writes();
    for (int i = 0; i < sent.size(); i++) {
      if (outcome.codes()[i] == WriteCode.UNANSWERED) {
        unanswered.add(sent.get(i));
      } else {
        settle(sent.get(i), outcome.codes()[i]);
      }
    }
    if (unanswered.isEmpty()) {
      inFlight.remove(batch);
      send();
    } else {
      retry(batch, unanswered, outcome.failure());
    }
    release();
  }

  private void settle(PendingWrite pending, int code) {
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

  private void retry(WriteBatch batch, List<PendingWrite> unanswered, Throwable failure) {
    failIfFatal(failure);
    int failures = batch.failed(unanswered);
    metrics.storeRetries.inc();
    if (Integer.bitCount(failures) == 1) {
      LOG.warn(
          "{} writes of table {} got no answer from {}, attempt {}",
          unanswered.size(),
          table.table(),
          store.address(),
          failures,
          failure);
    }
    later(Backoff.delayMs(failures), "write a batch again", () -> attempt(batch));
  }

  private void failIfFatal(Throwable failure) {
    Optional<StoreException> fatal = StoreFailures.fatal(store.address(), failure);
    if (fatal.isPresent()) {
      throw fatal.get();
    }
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

  /** Whether the store has all that was acknowledged, as far as is known. */
  private boolean mayRelease() {
    return !identity.isRestorePending() && store.isConnected();
  }

  private void release() {
    if (mayRelease()) {
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

  /** Sends what happens to connections to the task's thread. */
  private final class ServerEvents implements StoreListener {
    @Override
    public void connected(Set<String> runIds) {
      mail("identify the store's servers", () -> onConnected(runIds));
    }

    @Override
    public void disconnected() {
      mail("connect to the store again", () -> connect(0));
    }
  }

  private void onConnected(Set<String> runIds) {
    if (identity.connected(runIds)) {
      startRestoring("a server of the store is new or restarted: " + runIds);
    }
    register();
    release();
  }

  /** Makes the table known to clients, also of a store that came back without it. */
  private void register() {
    String registry = deployment.redis().prefix() + REGISTRY;
    store
        .setField(utf8(registry), utf8(table.table()), utf8(definition))
        .whenComplete(
            (done, failure) -> {
              if (failure != null) {
                LOG.warn("Cannot enter table {} into {}", table.table(), registry, failure);
              }
            });
  }

  private static byte[] utf8(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  /** Keeps trying until every server is connected, so that a loss is noticed without writes. */
  private void connect(int failures) {
    if (failures == 0 && connecting) {
      return;
    }
    connecting = true;
    store
        .connect()
        .whenComplete(
            (done, failure) -> mail("see the store's servers", () -> onConnect(failures, failure)));
  }

  private void onConnect(int failures, Throwable failure) {
    if (failure == null) {
      connecting = false;
      release();
      return;
    }
    failIfFatal(failure);
    later(Backoff.delayMs(failures + 1), "connect to the store again", () -> connect(failures + 1));
  }

  private void startRestoring(String reason) {
    LOG.warn(
        "Restoring table {} to {} from topic {}: {}",
        table.table(),
        store.address(),
        table.changesTopic(),
        reason);
    if (restorer != null) {
      restorer.stop();
    }
    settledCheckpoint = checkpointing ? new SettledCheckpoint() : null;
    int subtask = getRuntimeContext().getTaskInfo().getIndexOfThisSubtask();
    int parallelism = getRuntimeContext().getTaskInfo().getNumberOfParallelSubtasks();
    restorer =
        new StoreRestorer(
            changeLogs.open(table, deployment, subtask, parallelism),
            store,
            deployment.redis(),
            checkpointing ? Long.MAX_VALUE : RESTORE_SETTLE_MS,
            new RestoreEvents());
    restorer.start("freshet-restore-" + table.table() + "-" + subtask);
  }

  /** Sends what a restorer tells to the task's thread. */
  private final class RestoreEvents implements StoreRestorer.Listener {
    @Override
    public void written(long values) {
      mail("count restored values", () -> metrics.writesRestored.inc(values));
    }

    @Override
    public void restored(StoreRestorer source) {
      mail("release what waited for the restore", () -> onRestored(source));
    }

    @Override
    public void failed(Throwable failure) {
      mail(
          "fail the job",
          () -> {
            throw new IllegalStateException(
                "table " + table.table() + " cannot be restored to " + store.address(), failure);
          });
    }
  }

  private void onRestored(StoreRestorer source) {
    if (source != restorer) {
      // Another loss has started another restore since.
      return;
    }
    LOG.info("Table {} is restored to {}", table.table(), store.address());
    restorer = null;
    identity.restored();
    release();
  }

  // The task's thread.

  private void mail(String what, ThrowingRunnable<Exception> action) {
    try {
      mailbox.execute(action, what);
    } catch (RejectedExecutionException e) {
      LOG.debug("The task ended before it could {}", what, e);
    }
  }

  private void later(long delayMs, String what, ThrowingRunnable<Exception> action) {
    try {
      waiting.schedule(() -> mail(what, action), delayMs, TimeUnit.MILLISECONDS);
    } catch (RejectedExecutionException e) {
      LOG.debug("The task ended before it could {}", what, e);
    }
  }
}
