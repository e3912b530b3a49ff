package dev.freshet.operators.scheduling;

import dev.freshet.connectors.record.Event;
import dev.freshet.connectors.record.Feedback;
import dev.freshet.connectors.record.Version;
import dev.freshet.operators.compute.ComputeContext;
import dev.freshet.operators.compute.ComputeOutcomes;
import dev.freshet.operators.compute.ComputeRequestEncoder;
import dev.freshet.operators.compute.TaskIds;
import dev.freshet.schemas.DeadLetter;
import dev.freshet.schemas.Stage;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.stream.Stream;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeutils.base.LongSerializer;
import org.apache.flink.api.common.typeutils.base.array.BytePrimitiveArraySerializer;
import org.apache.flink.runtime.state.KeyGroupRangeAssignment;
import org.apache.flink.runtime.state.StateInitializationContext;
import org.apache.flink.runtime.state.StateSnapshotContext;
import org.apache.flink.runtime.state.VoidNamespace;
import org.apache.flink.runtime.state.VoidNamespaceSerializer;
import org.apache.flink.streaming.api.operators.AbstractStreamOperator;
import org.apache.flink.streaming.api.operators.InternalTimer;
import org.apache.flink.streaming.api.operators.InternalTimerService;
import org.apache.flink.streaming.api.operators.StreamOperatorParameters;
import org.apache.flink.streaming.api.operators.Triggerable;
import org.apache.flink.streaming.api.operators.TwoInputStreamOperator;
import org.apache.flink.streaming.api.watermark.Watermark;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;
import org.apache.flink.util.OutputTag;

/**
 * Feature maintenance (RALF §2.4): events go into the key's raw window, feedback into its regret,
 * and within the compute budget the {@link RegretTimerService} fires the keys whose staleness hurts
 * most. A fired key's window goes to the feature function, the next operator of the chain.
 *
 * <p>A key is eligible when it has pending data, no computation under way, enough points, and is
 * not backing off from a failure; on demand, when someone waits to read it, too. Choosing it clears
 * its pending data and feedback; feedback counts on the current version only.
 *
 * <p>The chain is the credit: {@code collect} returns when the feature function has computed the
 * batch, and the {@link ComputeOutcomes} board tells how it ended. A computation whose outcome is
 * not known at a checkpoint is pending again after a restore.
 *
 * <p>With a budget on the wall clock, the loop runs on processing-time timers: compute a batch,
 * take in what has arrived for a short slice, choose again. With a budget for each step of event
 * time, choices are made as the watermark passes the step's end, on what carries a time up to it;
 * the same input then makes the same choices with the same versions.
 */
final class FeatureMaintenanceOperator extends AbstractStreamOperator<byte[]>
    implements TwoInputStreamOperator<Event, Feedback, byte[]>, Triggerable<String, VoidNamespace> {

  private static final long serialVersionUID = 1L;

  private static final String RECORD_STATE = "key-record";
  private static final String WINDOW_STATE = "raw-window";
  private static final String EARLY_STATE = "early-input";
  private static final String PROGRESS_STATE = "step-progress";
  private static final String TIMERS = "feature-maintenance";

  /** Feedback may be ahead of this clock by so much, e.g. after a failover to a slower clock. */
  private static final long MAX_CLOCK_SKEW_MICROS = 60_000_000;

  /** A function that says "later" without saying when is not called in a tight loop. */
  private static final long PAUSE_MS_MIN = 10;

  /** Whatever a third party says, it is asked again after so long. */
  private static final long PAUSE_MS_MAX = 300_000;

  private static final long NANOS_PER_MS = 1_000_000;

  private final MaintenanceSettings settings;
  private final OutputTag<DeadLetter> deadLetters;

  private transient ValueState<KeyRecord> records;
  private transient ListStateDescriptor<EarlyInput> earlyInputs;
  private transient ListState<StepProgress> progress;
  private transient List<StepProgress> restoredProgress;
  private transient KeyWindows windows;
  private transient InternalTimerService<VoidNamespace> flinkTimers;

  private transient RegretTimerService timers;
  private transient RegretTimerService resuming;
  private transient VersionClock clock;
  private transient EventTimeSteps steps;
  private transient EventTimeStepBudget stepBudget;
  private transient ComputeLoop loop;
  private transient BundleSizer bundles;
  private transient ComputeRequestEncoder encoder;
  private transient ComputeOutcomes outcomes;
  private transient Backoff backoff;
  private transient MaintenanceMetrics metrics;
  private transient RandomPolicy lottery;
  private transient SplittableRandom chance;
  private transient long lastBatchNanos;
  private transient int lastBatchPutOff;
  private transient long pausedUntilNanos;

  FeatureMaintenanceOperator(
      StreamOperatorParameters<byte[]> parameters,
      MaintenanceSettings settings,
      OutputTag<DeadLetter> deadLetters) {
    super(parameters);
    this.settings = settings;
    this.deadLetters = deadLetters;
  }

  @Override
  public void initializeState(StateInitializationContext context) throws Exception {
    super.initializeState(context);
    progress =
        context
            .getOperatorStateStore()
            .getUnionListState(
                new ListStateDescriptor<>(PROGRESS_STATE, new StepProgress.Serializer()));
    restoredProgress = new ArrayList<>();
    progress.get().forEach(restoredProgress::add);
  }

  @Override
  public void open() throws Exception {
    super.open();
    records =
        getPartitionedState(new ValueStateDescriptor<>(RECORD_STATE, new KeyRecordSerializer()));
    windows =
        new KeyWindows(
            getPartitionedState(
                new ListStateDescriptor<>(WINDOW_STATE, BytePrimitiveArraySerializer.INSTANCE)),
            settings.window());
    earlyInputs = new ListStateDescriptor<>(EARLY_STATE, new EarlyInput.Serializer());
    flinkTimers = getInternalTimerService(TIMERS, VoidNamespaceSerializer.INSTANCE, this);
    lottery =
        settings.policy() instanceof RandomPolicy random && !settings.onDemand() ? random : null;
    chance = new SplittableRandom(lottery == null ? 0 : lottery.seed() + subtask());
    timers = new RegretTimerService();
    resuming = new RegretTimerService();
    clock = new VersionClock(maxParallelism());
    metrics = new MaintenanceMetrics(getMetricGroup(), settings.table(), timers);
    bundles = new BundleSizer(settings.bundleTargetMs(), settings.bundleMaxKeys());
    encoder = new ComputeRequestEncoder(settings.kind(), settings.windowBytesMax());
    pausedUntilNanos = Long.MIN_VALUE;
    outcomes =
        ComputeOutcomes.of(TaskIds.of(getContainingTask().getEnvironment(), settings.table()));
    openBudget();
    rebuildDerivedState();
  }

  private void openBudget() {
    ComputeBudget budget = settings.budget().forSubtask(parallelism());
    metrics.watch(budget, this::nanoTime);
    if (budget instanceof EventTimeStepBudget perStep) {
      stepBudget = perStep;
      steps = new EventTimeSteps(perStep);
      backoff = Backoff.inSteps(perStep.stepMs());
      if (!restoredProgress.isEmpty()) {
        steps.restore(restoredProgress, subtask(), parallelism());
      }
    } else if (budget instanceof ComputeBudget.WallClock onWallClock) {
      loop = new ComputeLoop(onWallClock, getProcessingTimeService(), this::computeBatch);
      backoff = Backoff.onWallClock();
    }
  }

  /** Queue, clock and gauges follow from the records that this subtask owns. */
  private void rebuildDerivedState() throws Exception {
    List<String> keys;
    try (Stream<String> stored =
        this.<String>getKeyedStateBackend().getKeys(RECORD_STATE, VoidNamespace.INSTANCE)) {
      keys = stored.toList();
    }
    for (String key : keys) {
      setCurrentKey(key);
      KeyRecord record = records.value();
      clock.observe(keyGroup(key), record.lastChosenTimestamp);
      if (record.undoComputation()) {
        records.update(record);
      }
      if (record.retryAt > now()) {
        // Flink may have written its timers before the outcome came that set this one.
        wakeUp(record.retryAt);
      }
      metrics.keyAdded();
      metrics.regretChanged(0, record.regret);
      metrics.costChanged(Double.NaN, record.costNanos);
      reschedule(key, record);
    }
    if (steps != null) {
      flinkTimers.forEachEventTimeTimer((ignored, at) -> steps.expect(steps.stepEnd(at)));
    }
  }

  @Override
  public void processElement1(StreamRecord<Event> element) throws Exception {
    Event event = element.getValue();
    inputTaken();
    KeyRecord record = currentRecord();
    switch (windows.add(record, event, windowFloor(record))) {
      case DUPLICATE -> metrics.eventsDuplicate.inc();
      case TOO_LATE -> metrics.eventsTooLate.inc();
      case PENDING -> eventPending(event, record);
    }
  }

  private void eventPending(Event event, KeyRecord record) throws Exception {
    if (isEarly(event.timestampMs())) {
      keepEarly(EarlyInput.ofEvent(event.timestampMs()));
    } else {
      record.eventPending(event.timestampMs());
    }
    records.update(record);
    reschedule(event.key(), record);
  }

  @Override
  public void processElement2(StreamRecord<Feedback> element) throws Exception {
    Feedback feedback = element.getValue();
    inputTaken();
    if (feedback.demand()) {
      takeDemand(feedback);
      return;
    }
    if (feedback.timestampMs() != Feedback.NO_TIMESTAMP && isEarly(feedback.timestampMs())) {
      // Even of an unknown key: in a replay, feedback may overtake the key's first event.
      keepEarly(EarlyInput.ofFeedback(feedback));
      return;
    }
    KeyRecord record = records.value();
    if (record == null) {
      metrics.feedbackDropped.inc();
      return;
    }
    if (applyFeedback(feedback.key(), record, QueryFeedback.of(feedback))) {
      records.update(record);
      reschedule(feedback.key(), record);
    }
  }

  private void takeDemand(Feedback demand) throws Exception {
    if (!settings.onDemand()) {
      metrics.demandsIgnored.inc();
      return;
    }
    if (demand.timestampMs() != Feedback.NO_TIMESTAMP && isEarly(demand.timestampMs())) {
      keepEarly(EarlyInput.ofDemand(demand.timestampMs()));
      return;
    }
    KeyRecord record = records.value();
    // In order of arrival: a reader's own clock may be off.
    if (applyDemand(record, now())) {
      records.update(record);
      reschedule(demand.key(), record);
    }
  }

  @Override
  public void processWatermark(Watermark mark) throws Exception {
    if (steps != null) {
      steps.advance(mark.getTimestamp(), timers::isEmpty, this::decideStep);
    }
    super.processWatermark(mark);
  }

  @Override
  public void onEventTime(InternalTimer<String, VoidNamespace> timer) throws Exception {
    String key = timer.getKey();
    KeyRecord record = records.value();
    List<EarlyInput> inputs = takeEarly(timer.getTimestamp());
    if (record == null) {
      inputs.forEach(this::countUnknown);
      return;
    }
    if (!inputs.isEmpty()) {
      inputs.forEach(input -> applyEarly(key, record, input));
      records.update(record);
    }
    reschedule(key, record, timer.getTimestamp());
  }

  @Override
  public void onProcessingTime(InternalTimer<String, VoidNamespace> timer) throws Exception {
    reschedule(timer.getKey(), records.value());
  }

  @Override
  public void snapshotState(StateSnapshotContext context) throws Exception {
    super.snapshotState(context);
    takeOutcomes();
    progress.update(steps == null ? List.of() : List.of(steps.snapshot(subtask(), parallelism())));
  }

  @Override
  public void close() throws Exception {
    if (outcomes != null) {
      ComputeOutcomes.remove(TaskIds.of(getContainingTask().getEnvironment(), settings.table()));
    }
    super.close();
  }

  // Choosing.

  private void decideStep(long stepEnd) throws Exception {
    getTimeServiceManager()
        .orElseThrow(() -> new IllegalStateException("a keyed operator has timers"))
        .advanceWatermark(new Watermark(stepEnd));
    takeOutcomes();
    int allowed = stepBudget.beginStep();
    if (lottery != null && allowed > 0) {
      timers.reprioritize(key -> lottery.lot(key, stepEnd));
    }
    int chosen = 0;
    int computed = 0;
    while (chosen < allowed && !timers.isEmpty() && !isPaused()) {
      int batch = compute(Math.min(allowed - chosen, bundles.keys()), stepEnd, stepEnd * 1_000);
      chosen += batch;
      computed += batch - lastBatchPutOff;
    }
    stepBudget.spend(computed);
  }

  /** A batch of the wall-clock loop; returns the nanoseconds that the feature function took. */
  private ComputeLoop.Batch computeBatch(int allowed) throws Exception {
    takeOutcomes();
    long nowMs = getProcessingTimeService().getCurrentProcessingTime();
    int keys = compute(Math.min(allowed, bundles.keys()), Long.MAX_VALUE, nowMs * 1_000);
    return new ComputeLoop.Batch(keys - lastBatchPutOff, lastBatchNanos, timers.isEmpty());
  }

  /**
   * Chooses up to so many keys and hands their windows on in one batch. The choices are those that
   * would be made one by one: the batch ends where a key in it would be chosen again.
   *
   * @param horizon events after this time are not known yet
   * @return how many were chosen
   */
  private int compute(int maxKeys, long horizon, long physicalMicros) throws Exception {
    encoder.clear();
    resuming.clear();
    while (encoder.count() < maxKeys
        && !encoder.isFull()
        && !timers.isEmpty()
        && !resuming.firesBefore(timers)) {
      choose(nextKey(), horizon, physicalMicros);
    }
    int chosen = encoder.count();
    lastBatchNanos = 0;
    lastBatchPutOff = 0;
    if (chosen > 0) {
      metrics.updates.inc(chosen);
      output.collect(new StreamRecord<>(encoder.toBytes()));
      takeOutcomes();
    }
    return chosen;
  }

  private String nextKey() {
    // On the wall clock lots would be drawn anew for each choice: one draw does the same.
    return lottery != null && steps == null
        ? timers.pollAny(chance.nextInt(timers.size()))
        : timers.poll();
  }

  private void choose(String key, long horizon, long physicalMicros) throws Exception {
    setCurrentKey(key);
    KeyRecord record = records.value();
    RawWindow window = windows.read();
    int known = window.countThrough(horizon);
    long asOf = nextAsOf(record, horizon);
    int through = window.countThrough(asOf);
    List<byte[]> points = windows.asOf(window, asOf);
    while (points.size() < settings.minPoints() && through < known) {
      // Too little data for a value as of this event: on to the next.
      asOf = RawWindow.timestamp(window.entries().get(through));
      through = window.countThrough(asOf);
      points = windows.asOf(window, asOf);
    }
    if (points.size() < settings.minPoints()) {
      // Its data stays pending; the next event schedules the key again.
      return;
    }
    int stillPending = known - through;
    long oldestStillPending =
        stillPending > 0 ? RawWindow.timestamp(window.entries().get(through)) : Long.MAX_VALUE;
    double regret = record.regret;
    long timestamp = clock.next(keyGroup(key), physicalMicros);
    long eventTime = RawWindow.timestamp(points.get(points.size() - 1));
    record.startComputation(timestamp, eventTime, stillPending, oldestStillPending);
    ComputeContext context =
        new ComputeContext(
            key, new Version(timestamp, settings.origin()), eventTime, !record.hasValue(), regret);
    String problem = encoder.add(context, points, RawWindow.VALUE_OFFSET);
    if (problem != null) {
      rejectWindow(context, record, problem);
    } else if (stillPending > 0) {
      resuming.schedule(key, priority(record), record.lastChosenMs());
    }
    windows.trim(record, window, eventTime);
    records.update(record);
  }

  /** A window that can't be computed costs its key a dead letter, as a failed computation does. */
  private void rejectWindow(ComputeContext context, KeyRecord record, String problem) {
    metrics.deadLetters.inc();
    output.collect(
        deadLetters,
        new StreamRecord<>(
            DeadLetter.newBuilder()
                .setTable(settings.table())
                .setStage(Stage.FUNCTION)
                .setReason(problem)
                .setKey(ByteBuffer.wrap(context.key().getBytes(StandardCharsets.UTF_8)))
                .setEventTime(context.eventTimeMs())
                .build()));
    fail(record);
    reschedule(context.key(), record);
  }

  private void fail(KeyRecord record) {
    metrics.updatesFailed.inc();
    record.failComputation(now() + backoff.delayMs(record.failures));
    wakeUp(record.retryAt);
  }

  private void takeOutcomes() throws Exception {
    for (ComputeOutcomes.Outcome outcome = outcomes.poll();
        outcome != null;
        outcome = outcomes.poll()) {
      setCurrentKey(outcome.key());
      takeOutcome(outcome);
    }
  }

  private void takeOutcome(ComputeOutcomes.Outcome outcome) throws Exception {
    KeyRecord record = records.value();
    if (record == null || record.inFlightTimestamp != outcome.version().timestampMicros()) {
      return;
    }
    switch (outcome.ending()) {
      case COMPUTED -> {
        metrics.regretChanged(record.regret, 0);
        record.completeComputation(outcome.version().origin());
        measure(outcome, record);
      }
      case FAILED -> {
        fail(record);
        measure(outcome, record);
      }
      case RATE_LIMITED -> {
        metrics.updatesRateLimited.inc();
        record.undoComputation();
        lastBatchPutOff++;
        pause(outcome.retryAfterMs());
      }
    }
    records.update(record);
    reschedule(outcome.key(), record);
  }

  private void measure(ComputeOutcomes.Outcome outcome, KeyRecord record) {
    double costBefore = record.costNanos;
    record.computed(outcome.computeNanos());
    metrics.costChanged(costBefore, record.costNanos);
    bundles.measured(outcome.computeNanos());
    lastBatchNanos += outcome.computeNanos();
    metrics.computeTimeMicros.update(outcome.computeNanos() / 1_000);
  }

  /** Computes nothing for so long, whichever key: the limit is not on a key. */
  private void pause(long retryAfterMs) {
    long nanos = Math.max(PAUSE_MS_MIN, Math.min(PAUSE_MS_MAX, retryAfterMs)) * NANOS_PER_MS;
    if (loop != null) {
      loop.pause(nanos);
    } else {
      pausedUntilNanos = Math.max(pausedUntilNanos, nanoTime() + nanos);
    }
  }

  /** Steps that are decided in a pause compute nothing; their budget is saved up as if unused. */
  private boolean isPaused() {
    return nanoTime() < pausedUntilNanos;
  }

  private long nanoTime() {
    return getProcessingTimeService().getClock().relativeTimeNanos();
  }

  // Records.

  private KeyRecord currentRecord() throws Exception {
    KeyRecord record = records.value();
    if (record == null) {
      metrics.keyAdded();
      return new KeyRecord();
    }
    return record;
  }

  private void applyEarly(String key, KeyRecord record, EarlyInput input) {
    switch (input.kind()) {
      case EVENT -> record.eventPending(input.timestampMs());
      case FEEDBACK -> applyFeedback(key, record, input.feedback());
      case DEMAND -> applyDemand(record, input.timestampMs());
    }
  }

  /** Input of a key that never had an event. */
  private void countUnknown(EarlyInput input) {
    (input.kind() == EarlyInput.Kind.DEMAND ? metrics.demandsIgnored : metrics.feedbackDropped)
        .inc();
  }

  /** Notes that someone waits for the key; of no use when there is nothing newer to compute. */
  private boolean applyDemand(KeyRecord record, long at) {
    boolean useful = record != null && record.demand(at);
    (useful ? metrics.demands : metrics.demandsIgnored).inc();
    return useful;
  }

  /**
   * Adds feedback on the current version to the record; other feedback is dropped. A key without a
   * value has the version {@link Version#NONE}, of which queries tell that found nothing.
   */
  private boolean applyFeedback(String key, KeyRecord record, QueryFeedback feedback) {
    boolean current = record.hasEvents() && feedback.version().equals(record.version());
    if (record.isInFlight() || !current) {
      metrics.feedbackDropped.inc();
      followClock(key, feedback.version());
      return false;
    }
    double before = record.regret;
    record.feedback(feedback, steps != null ? steps.lastDecided() : record.errors);
    metrics.feedbackUsed.inc();
    metrics.regretChanged(before, record.regret);
    return true;
  }

  /**
   * A version of ours that we do not know was issued before a failure and lost with it. The clock
   * must pass it, even if this machine's wall clock is behind the other's.
   */
  private void followClock(String key, Version version) {
    if (loop != null
        && version.origin() == settings.origin()
        && version.timestampMicros() <= now() * 1_000 + MAX_CLOCK_SKEW_MICROS) {
      clock.observe(keyGroup(key), version.timestampMicros());
    }
  }

  private void reschedule(String key, KeyRecord record) {
    reschedule(key, record, now());
  }

  private void reschedule(String key, KeyRecord record, long now) {
    boolean eligible =
        record.pending > 0
            && !record.isInFlight()
            && record.entries >= settings.minPoints()
            && record.retryAt <= now
            && (!settings.onDemand() || record.isDemanded());
    if (eligible) {
      timers.schedule(key, priority(record), record.lastChosenMs());
      if (loop != null) {
        loop.wake();
      }
    } else {
      timers.cancel(key);
    }
  }

  /** On demand, who has waited longest comes first; else it is for the policy to say. */
  private double priority(KeyRecord record) {
    return settings.onDemand() ? -(double) record.demandedAt() : settings.policy().priority(record);
  }

  // Time.

  private long now() {
    return steps != null
        ? steps.lastDecided()
        : getProcessingTimeService().getCurrentProcessingTime();
  }

  private void wakeUp(long at) {
    if (steps != null) {
      steps.expect(steps.stepEnd(at));
      flinkTimers.registerEventTimeTimer(VoidNamespace.INSTANCE, at);
    } else {
      flinkTimers.registerProcessingTimeTimer(VoidNamespace.INSTANCE, at);
    }
  }

  private boolean isEarly(long timestampMs) {
    return steps != null && !steps.isDecided(steps.stepEnd(timestampMs));
  }

  private void keepEarly(EarlyInput input) throws Exception {
    long stepEnd = steps.stepEnd(input.timestampMs());
    earlyInputs(stepEnd).add(input);
    flinkTimers.registerEventTimeTimer(VoidNamespace.INSTANCE, stepEnd);
    steps.expect(stepEnd);
  }

  /** What the current key kept for the step, in order of application. */
  private List<EarlyInput> takeEarly(long stepEnd) throws Exception {
    ListState<EarlyInput> state = earlyInputs(stepEnd);
    Iterable<EarlyInput> kept = state.get();
    List<EarlyInput> inputs = new ArrayList<>();
    if (kept != null) {
      kept.forEach(inputs::add);
      state.clear();
    }
    inputs.sort(EarlyInput.ORDER);
    return inputs;
  }

  /** The list of one step: its own namespace, so that input is appended without reading. */
  private ListState<EarlyInput> earlyInputs(long stepEnd) throws Exception {
    return getPartitionedState(stepEnd, LongSerializer.INSTANCE, earlyInputs);
  }

  private void inputTaken() {
    if (loop != null) {
      loop.inputTaken();
    }
  }

  private boolean consumesOldest() {
    return settings.policy().consumption() == SchedulingPolicy.Consumption.OLDEST_PENDING;
  }

  /** The time as of which a choice computes the key. */
  private long nextAsOf(KeyRecord record, long horizon) {
    return consumesOldest() ? Math.max(record.asOf, record.oldestPending) : horizon;
  }

  /** The windows of the key that will be read are as of this time or later. */
  private long windowFloor(KeyRecord record) {
    if (record.isInFlight()) {
      return record.inFlightAsOf;
    }
    if (consumesOldest()) {
      return record.pending > 0 ? Math.max(record.asOf, record.oldestPending) : record.asOf;
    }
    return steps != null ? steps.lastDecided() : record.newest;
  }

  private int keyGroup(String key) {
    return KeyGroupRangeAssignment.assignToKeyGroup(key, maxParallelism());
  }

  private int maxParallelism() {
    return getRuntimeContext().getTaskInfo().getMaxNumberOfParallelSubtasks();
  }

  private int parallelism() {
    return getRuntimeContext().getTaskInfo().getNumberOfParallelSubtasks();
  }

  private int subtask() {
    return getRuntimeContext().getTaskInfo().getIndexOfThisSubtask();
  }
}
