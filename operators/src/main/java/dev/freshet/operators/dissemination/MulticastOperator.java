package dev.freshet.operators.dissemination;

import dev.freshet.connectors.chunk.BadChangeException;
import dev.freshet.connectors.chunk.Chunk;
import dev.freshet.connectors.chunk.ChunkCodec;
import dev.freshet.connectors.chunk.KeyChange;
import dev.freshet.connectors.format.AvroRecordTypeInfo;
import dev.freshet.connectors.format.SingleObjectCodec;
import dev.freshet.connectors.kafka.LogRecord;
import dev.freshet.connectors.link.Transport;
import dev.freshet.schemas.DeadLetter;
import dev.freshet.schemas.RegionReport;
import dev.freshet.schemas.Reporter;
import dev.freshet.schemas.ShardKnowledge;
import dev.freshet.schemas.Stage;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.apache.flink.api.common.TaskInfo;
import org.apache.flink.api.common.operators.MailboxExecutor;
import org.apache.flink.api.common.serialization.SerializerConfigImpl;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.PrimitiveArrayTypeInfo;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.runtime.state.KeyGroupRangeAssignment;
import org.apache.flink.runtime.state.StateInitializationContext;
import org.apache.flink.runtime.state.StateSnapshotContext;
import org.apache.flink.runtime.state.VoidNamespace;
import org.apache.flink.streaming.api.operators.AbstractStreamOperator;
import org.apache.flink.streaming.api.operators.StreamOperatorParameters;
import org.apache.flink.streaming.api.operators.TwoInputStreamOperator;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;
import org.apache.flink.util.OutputTag;
import org.apache.flink.util.clock.Clock;
import org.apache.flink.util.clock.SystemClock;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Sends changes to other regions; the multicast job's operator, around {@link Dissemination}.
 *
 * <p>Input one is the records of the changes topics, keyed by shard; their partition is the shard's
 * number among those of all tables. Input two is broadcast: reports of regions in Avro, and plans
 * in JSON. Output is this subtask's own reports.
 *
 * <p>Delivery: at least once. What next hops have not acknowledged is in the state of its shard, as
 * chunks, beside the offset up to which the shard was read.
 */
final class MulticastOperator extends AbstractStreamOperator<RegionReport>
    implements TwoInputStreamOperator<LogRecord, LogRecord, RegionReport> {

  private static final long serialVersionUID = 1L;
  private static final Logger LOG = LoggerFactory.getLogger(MulticastOperator.class);

  /** Side output of changes that cannot be read. */
  static final OutputTag<DeadLetter> DEAD_LETTERS =
      new OutputTag<>("multicast-dead-letters", AvroRecordTypeInfo.DEAD_LETTER);

  private static final String HEAD_STATE = "head";

  /** What was counted of links stands in the state under this name. */
  private static final String NO_TABLE = "";

  private final MulticastSettings settings;
  private final Shards shards;
  private final Transports transports;
  private final transient MailboxExecutor mailbox;

  // State, by shard.
  private transient ListState<byte[]> unacknowledgedState;
  private transient ValueState<Long> headState;

  // State of the subtask: any subtask may go on from it, since readers take the sum.
  private transient ListState<RegionReport> countersState;

  private transient Transport transport;
  private transient ChangeHistory history;
  private transient MulticastMetrics metrics;
  private transient Dissemination dissemination;
  private transient SingleObjectCodec<RegionReport> reports;
  private transient TaskTimer timer;

  /** The JSON of the plans in force, by table. */
  private transient Map<String, String> plans;

  MulticastOperator(
      StreamOperatorParameters<RegionReport> parameters,
      MulticastSettings settings,
      Transports transports) {
    super(parameters);
    this.settings = settings;
    this.shards = new Shards(settings.tables());
    this.transports = transports;
    this.mailbox = parameters.getMailboxExecutor();
  }

  // Life cycle.

  @Override
  public void initializeState(StateInitializationContext context) throws Exception {
    super.initializeState(context);
    reports = SingleObjectCodec.of(RegionReport.class);
    plans = new HashMap<>();
    timer = new TaskTimer(getProcessingTimeService(), mailbox, () -> dissemination.pump());
    transport = transports.transport(getRuntimeContext());
    history = transports.history(getRuntimeContext());
    Clock clock = SystemClock.getInstance();
    metrics = new MulticastMetrics(getMetricGroup(), clock);
    dissemination = new Dissemination(settings, transport, history, timer, clock, metrics);
    unacknowledgedState =
        context
            .getKeyedStateStore()
            .getListState(
                new ListStateDescriptor<>(
                    "unacknowledged", PrimitiveArrayTypeInfo.BYTE_PRIMITIVE_ARRAY_TYPE_INFO));
    headState =
        context.getKeyedStateStore().getState(new ValueStateDescriptor<>(HEAD_STATE, Types.LONG));
    countersState =
        context
            .getOperatorStateStore()
            .getListState(
                new ListStateDescriptor<>(
                    "counters",
                    AvroRecordTypeInfo.of(RegionReport.class)
                        .createSerializer(new SerializerConfigImpl())));
    assumeHeads();
    restoreCounters();
    restore();
  }

  private void assumeHeads() {
    TaskInfo task = getRuntimeContext().getTaskInfo();
    Map<String, Map<Integer, Long>> ends = new HashMap<>();
    for (Shards.Shard shard : shards.all()) {
      int owner =
          KeyGroupRangeAssignment.assignKeyToParallelOperator(
              shard.key(),
              task.getMaxNumberOfParallelSubtasks(),
              task.getNumberOfParallelSubtasks());
      if (owner == task.getIndexOfThisSubtask()) {
        DisseminatedTable table = dissemination.table(shard.table());
        Map<Integer, Long> ofTable =
            ends.computeIfAbsent(shard.table(), name -> history.ends(table.settings()));
        table.shard(shard.partition()).assume(ofTable.getOrDefault(shard.partition(), 0L) - 1);
      }
    }
  }

  private void restoreCounters() throws Exception {
    for (RegionReport counted : countersState.get()) {
      counted.getLinks().forEach(dissemination::restoreCounters);
      DisseminatedTable table = dissemination.table(counted.getTable());
      if (table != null) {
        table.restoreCounters(counted.getChanges(), counted.getChangeBytes());
      }
    }
  }

  private void restore() throws Exception {
    Map<String, Shards.Shard> byKey = shards.byKey();
    ChunkCodec codec = new ChunkCodec();
    List<String> restored;
    try (Stream<String> keys =
        this.<String>getKeyedStateBackend().getKeys(HEAD_STATE, VoidNamespace.INSTANCE)) {
      restored = keys.toList();
    }
    for (String key : restored) {
      Shards.Shard shard = byKey.get(key);
      if (shard == null) {
        LOG.warn("The state holds shard {}, whose table is not sent any more", key);
        continue;
      }
      setCurrentKey(key);
      dissemination.table(shard.table()).shard(shard.partition()).restore(headState.value());
      for (byte[] bytes : unacknowledgedState.get()) {
        Chunk chunk = codec.decode(bytes);
        dissemination.restore(chunk.header(), codec.entries(chunk));
      }
    }
  }

  @Override
  public void open() throws Exception {
    super.open();
    timer.pump();
    timer.every(
        settings.reportIntervalMs(), () -> dissemination.tables().forEach(this::emitReport));
  }

  @Override
  public void close() throws Exception {
    if (transport != null) {
      transport.close();
    }
    if (history != null) {
      history.close();
    }
    super.close();
  }

  // Input.

  @Override
  public void processElement1(StreamRecord<LogRecord> element) throws Exception {
    LogRecord logRecord = element.getValue();
    Shards.Shard shard = shards.get(logRecord.partition());
    DisseminatedTable table = dissemination.table(shard.table());
    int partition = shard.partition();
    long wakeAtMs;
    if (logRecord.isTombstone()) {
      wakeAtMs = dissemination.skip(table, partition, logRecord.offset());
    } else {
      try {
        KeyChange change = table.reader().read(logRecord.value());
        wakeAtMs = dissemination.change(table, partition, logRecord.offset(), change);
      } catch (BadChangeException e) {
        wakeAtMs = dissemination.skip(table, partition, logRecord.offset());
        metrics.deadLetter(shard.table());
        output.collect(DEAD_LETTERS, new StreamRecord<>(deadLetter(table, shard, logRecord, e)));
      }
    }
    timer.wakeAt(wakeAtMs);
  }

  private static DeadLetter deadLetter(
      DisseminatedTable table, Shards.Shard shard, LogRecord logRecord, BadChangeException reason) {
    return DeadLetter.newBuilder()
        .setTable(shard.table())
        .setStage(Stage.MULTICAST)
        .setReason(
            "topic "
                + table.settings().topic()
                + ", partition "
                + shard.partition()
                + ", offset "
                + logRecord.offset()
                + ": "
                + reason.getMessage())
        .setValue(ByteBuffer.wrap(logRecord.value()))
        .build();
  }

  @Override
  public void processElement2(StreamRecord<LogRecord> element) throws Exception {
    byte[] message = element.getValue().value();
    if (message.length > 0 && message[0] == '{') {
      plan(new String(message, StandardCharsets.UTF_8));
    } else if (message.length > 0) {
      report(message);
    }
    timer.pump();
  }

  private void plan(String json) {
    try {
      MulticastPlan plan = MulticastPlan.parse(json);
      if (dissemination.plan(plan)) {
        plans.put(plan.table(), json);
      }
    } catch (IllegalArgumentException e) {
      LOG.error("The plan in force stays: the next one cannot be used: {}", e.getMessage());
    }
  }

  private void report(byte[] message) {
    try {
      RegionReport report = reports.decode(message);
      if (report.getReporter() == Reporter.REGION) {
        dissemination.report(report);
      }
    } catch (IOException e) {
      // The topic carries the online store writers' progress, too.
      LOG.debug("Not a region's report", e);
    }
  }

  // Output.

  private void emitReport(DisseminatedTable table) {
    String name = table.settings().table();
    List<ShardKnowledge> heads = new ArrayList<>();
    for (DisseminatedTable.Shard shard : table.shards()) {
      if (shard.head() >= 0) {
        heads.add(
            new ShardKnowledge(table.settings().log(), shard.number(), List.of(-1L, shard.head())));
      }
    }
    RegionReport report =
        newReport(name)
            .setSubtask(getRuntimeContext().getTaskInfo().getIndexOfThisSubtask())
            .setParallelism(getRuntimeContext().getTaskInfo().getNumberOfParallelSubtasks())
            .setReportedAtMicros(System.currentTimeMillis() * 1_000)
            .setLinks(dissemination.linkReports())
            .setChanges(table.changes())
            .setChangeBytes(table.changeBytes())
            .setHeads(heads)
            .setPlan(plans.getOrDefault(name, ""))
            .build();
    output.collect(new StreamRecord<>(report));
  }

  private RegionReport.Builder newReport(String table) {
    return RegionReport.newBuilder()
        .setRegion(settings.home())
        .setReporter(Reporter.MULTICAST)
        .setTable(table)
        .setSubtask(0)
        .setParallelism(1)
        .setReportedAtMicros(0);
  }

  // Checkpoints.

  @Override
  public void snapshotState(StateSnapshotContext context) throws Exception {
    super.snapshotState(context);
    for (Shards.Shard shard : shards.all()) {
      DisseminatedTable.Shard state = dissemination.table(shard.table()).known(shard.partition());
      if (state != null && state.isRead()) {
        setCurrentKey(shard.key());
        headState.update(state.head());
        unacknowledgedState.update(dissemination.unacknowledged(shard.table(), shard.partition()));
      }
    }
    countersState.update(counters());
  }

  /** What was counted since the job's first start, as reports of nothing else. */
  private List<RegionReport> counters() {
    List<RegionReport> counted = new ArrayList<>();
    counted.add(newReport(NO_TABLE).setLinks(dissemination.linkReports()).build());
    for (DisseminatedTable table : dissemination.tables()) {
      counted.add(
          newReport(table.settings().table())
              .setChanges(table.changes())
              .setChangeBytes(table.changeBytes())
              .build());
    }
    return counted;
  }
}
