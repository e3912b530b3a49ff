package dev.freshet.operators.dissemination;

import dev.freshet.connectors.chunk.ChunkCodec;
import dev.freshet.connectors.chunk.ChunkEntry;
import dev.freshet.connectors.chunk.ChunkHeader;
import dev.freshet.connectors.chunk.Covered;
import dev.freshet.connectors.chunk.DamagedChunkException;
import dev.freshet.connectors.chunk.KeyChange;
import dev.freshet.connectors.chunk.Route;
import dev.freshet.connectors.format.AvroRecordTypeInfo;
import dev.freshet.connectors.format.RegionsConfig;
import dev.freshet.connectors.kafka.LogRecord;
import dev.freshet.connectors.link.Transport;
import dev.freshet.connectors.metrics.MetricNames;
import dev.freshet.connectors.record.DeadLetters;
import dev.freshet.connectors.store.RegionStore;
import dev.freshet.connectors.store.StoreAnswer;
import dev.freshet.schemas.DeadLetter;
import dev.freshet.schemas.Purpose;
import dev.freshet.schemas.RegionReport;
import dev.freshet.schemas.Reporter;
import dev.freshet.schemas.Stage;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.apache.flink.api.common.operators.MailboxExecutor;
import org.apache.flink.api.common.serialization.SerializerConfigImpl;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.state.OperatorStateStore;
import org.apache.flink.api.common.typeinfo.PrimitiveArrayTypeInfo;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.metrics.Counter;
import org.apache.flink.metrics.MetricGroup;
import org.apache.flink.runtime.state.StateInitializationContext;
import org.apache.flink.runtime.state.StateSnapshotContext;
import org.apache.flink.runtime.state.VoidNamespace;
import org.apache.flink.streaming.api.operators.AbstractStreamOperator;
import org.apache.flink.streaming.api.operators.OneInputStreamOperator;
import org.apache.flink.streaming.api.operators.StreamOperatorParameters;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;
import org.apache.flink.util.OutputTag;
import org.apache.flink.util.clock.SystemClock;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Takes chunks in: sends them on along their route ({@link Relay}), writes them to the region's
 * store ({@link RegionStore}), and reports what the store has.
 *
 * <p>Input is the inbox, keyed by its partition. Output is reports; a side output takes what cannot
 * be used.
 *
 * <p>Delivery: at least once. A checkpoint waits neither for the store nor for next hops: what they
 * have not acknowledged is in the state of the inbox's partition, as chunks. What a chunk covers is
 * known once the store has answered each of its changes, and has lost nothing since the first was
 * written.
 *
 * <p>Input stops while much waits for the store, but not when that has been silent for a while:
 * then chunks are sent on and not applied, so that a store that is away holds up no other region.
 * The region does not know what they cover, so home sends it again.
 */
final class RegionOperator extends AbstractStreamOperator<RegionReport>
    implements OneInputStreamOperator<LogRecord, RegionReport> {

  private static final long serialVersionUID = 1L;
  private static final Logger LOG = LoggerFactory.getLogger(RegionOperator.class);

  /** Side output of chunks and changes that cannot be used. */
  static final OutputTag<DeadLetter> DEAD_LETTERS =
      new OutputTag<>("region-dead-letters", AvroRecordTypeInfo.DEAD_LETTER);

  /** What was counted of no single table stands in the state under this name. */
  private static final String NO_TABLE = "";

  private final RegionSettings settings;
  private final RegionsConfig config;
  private final TransportFactory transports;
  private final transient MailboxExecutor mailbox;

  // State, by partition of the inbox: chunks.
  private transient ListState<byte[]> knowledgeState;
  private transient ListState<byte[]> applyingState;
  private transient ListState<byte[]> unacknowledgedState;

  // State of the subtask, or of all subtasks.
  private transient ListState<RegionReport> countersState;
  private transient ListState<String> identityState;
  private transient ListState<Long> epochState;

  private transient ChunkCodec codec;
  private transient MetricGroup metrics;
  private transient Counter chunksRefused;
  private transient Transport transport;
  private transient Relay relay;
  private transient RegionStore store;
  private transient RegionKnowledge knowledge;
  private transient Map<String, RegionTable> tables;

  /** Chunks of which the store has not answered every change. */
  private transient Set<Application> applying;

  /** Partitions of the inbox that have been read here. */
  private transient Set<Integer> partitions;

  /** What an earlier run was applying. */
  private transient List<Arrival> restored;

  private transient List<String> identities;
  private transient long epoch;
  private transient long refused;
  private transient TaskTimer timer;

  RegionOperator(
      StreamOperatorParameters<RegionReport> parameters,
      RegionSettings settings,
      RegionsConfig config,
      TransportFactory transports) {
    super(parameters);
    this.settings = settings;
    this.config = config;
    this.transports = transports;
    this.mailbox = parameters.getMailboxExecutor();
  }

  // Life cycle.

  @Override
  public void initializeState(StateInitializationContext context) throws Exception {
    super.initializeState(context);
    codec = new ChunkCodec();
    knowledge = new RegionKnowledge();
    tables = new LinkedHashMap<>();
    applying = new LinkedHashSet<>();
    partitions = new TreeSet<>();
    restored = new ArrayList<>();
    timer = new TaskTimer(getProcessingTimeService(), mailbox, () -> relay.pump());
    metrics = getMetricGroup().addGroup(MetricNames.GROUP);
    chunksRefused = metrics.counter(MetricNames.CHUNKS_REFUSED);
    transport = transports.open(getRuntimeContext());
    relay = new Relay(settings, transport, timer, SystemClock.getInstance(), metrics);
    settings.tables().forEach(table -> table(table.table()));
    knowledgeState = chunkState(context, "knowledge");
    applyingState = chunkState(context, "applying");
    unacknowledgedState = chunkState(context, "unacknowledged");
    OperatorStateStore operatorState = context.getOperatorStateStore();
    countersState =
        operatorState.getListState(
            new ListStateDescriptor<>(
                "counters",
                AvroRecordTypeInfo.of(RegionReport.class)
                    .createSerializer(new SerializerConfigImpl())));
    identityState =
        operatorState.getUnionListState(new ListStateDescriptor<>("store-identity", Types.STRING));
    epochState = operatorState.getUnionListState(new ListStateDescriptor<>("epoch", Types.LONG));
    restore();
  }

  private static ListState<byte[]> chunkState(StateInitializationContext context, String name) {
    return context
        .getKeyedStateStore()
        .getListState(
            new ListStateDescriptor<>(name, PrimitiveArrayTypeInfo.BYTE_PRIMITIVE_ARRAY_TYPE_INFO));
  }

  private void restore() throws Exception {
    for (RegionReport counted : countersState.get()) {
      refused += counted.getRefused();
      counted.getLinks().forEach(relay::restoreCounters);
      if (!counted.getTable().equals(NO_TABLE)) {
        table(counted.getTable()).restore(counted);
      }
    }
    identities = new ArrayList<>();
    identityState.get().forEach(identities::add);
    epoch = 1;
    for (long before : epochState.get()) {
      epoch = Math.max(epoch, before);
    }
    boolean isLost = RegionStore.isLossUnnoticed(identities);
    epoch += isLost ? 1 : 0;
    restorePartitions();
    for (int partition : partitions) {
      setCurrentKey(partition);
      for (Arrival known : chunks(partition, isLost ? List.of() : knowledgeState.get())) {
        addKnowledge(known);
      }
      restored.addAll(chunks(partition, applyingState.get()));
      for (Arrival chunk : chunks(partition, unacknowledgedState.get())) {
        relay.restore(chunk);
      }
    }
  }

  private void restorePartitions() {
    for (String name : List.of("knowledge", "applying", "unacknowledged")) {
      try (Stream<Integer> keys =
          this.<Integer>getKeyedStateBackend().getKeys(name, VoidNamespace.INSTANCE)) {
        keys.forEach(partitions::add);
      }
    }
  }

  private List<Arrival> chunks(int partition, Iterable<byte[]> state) throws Exception {
    List<Arrival> chunks = new ArrayList<>();
    for (byte[] bytes : state) {
      chunks.add(new Arrival(partition, codec.decode(bytes), nowMicros(), codec));
    }
    return chunks;
  }

  @Override
  public void open() throws Exception {
    super.open();
    if (settings.applies()) {
      openStore();
    }
    timer.pump();
    timer.every(
        settings.reportIntervalMs(),
        () -> {
          relay.tidy();
          report();
        });
  }

  private void openStore() throws DamagedChunkException {
    store =
        new RegionStore(
            config.redis(),
            settings.tables().stream().map(RegionSettings.Table::inStore).toList(),
            identities,
            mailbox,
            "freshet-region-store-waits",
            getMetricGroup(),
            new StoreEvents());
    store.start();
    for (Arrival chunk : restored) {
      apply(chunk);
    }
    restored.clear();
  }

  @Override
  public void finish() throws Exception {
    while (store != null && !store.isIdle() && !isStoreSilent()) {
      mailbox.yield();
    }
    report();
    super.finish();
  }

  @Override
  public void close() throws Exception {
    if (transport != null) {
      transport.close();
    }
    if (store != null) {
      store.close();
    }
    super.close();
  }

  /** The region's clock: everything that leaves the region goes by it. */
  private long nowMicros() {
    Instant now = Instant.now().plusMillis(settings.clockAheadMs());
    return TimeUnit.SECONDS.toMicros(now.getEpochSecond())
        + TimeUnit.NANOSECONDS.toMicros(now.getNano());
  }

  private RegionTable table(String name) {
    return tables.computeIfAbsent(name, key -> new RegionTable(key, settings.sloMs(key), metrics));
  }

  // Input.

  @Override
  public void processElement(StreamRecord<LogRecord> element) throws Exception {
    LogRecord inbox = element.getValue();
    if (inbox.isTombstone()) {
      return;
    }
    partitions.add(inbox.partition());
    try {
      receive(
          new Arrival(inbox.partition(), codec.decode(inbox.value()), nowMicros(), codec), inbox);
    } catch (DamagedChunkException e) {
      refuse(inbox, NO_TABLE, e.getMessage());
    }
    timer.wakeAt(relay.nextLeaveMs());
    while (store != null && store.isFull() && !isStoreSilent()) {
      mailbox.yield();
    }
  }

  private void receive(Arrival arrival, LogRecord inbox) throws DamagedChunkException {
    ChunkHeader header = arrival.header();
    Route route = header.route();
    if (!route.region().equals(settings.region())) {
      refuse(
          inbox,
          header.table(),
          "the chunk is for region "
              + route.region()
              + " and came to "
              + settings.region()
              + "; let each region have an inbox of its own");
      return;
    }
    table(header.table());
    for (Route child : route.children()) {
      relay.forward(arrival, child);
    }
    if (route.applies() && store != null) {
      apply(arrival);
    }
  }

  private void refuse(LogRecord inbox, String table, String reason) {
    refused++;
    chunksRefused.inc();
    DeadLetter letter =
        DeadLetter.newBuilder()
            .setTable(table)
            .setStage(Stage.REGION)
            .setReason(
                "topic "
                    + config.inboxTopic()
                    + ", partition "
                    + inbox.partition()
                    + ", offset "
                    + inbox.offset()
                    + ": "
                    + reason)
            .setTopic(config.inboxTopic())
            .setPartition(inbox.partition())
            .setOffset(inbox.offset())
            .setValue(ByteBuffer.wrap(inbox.value()))
            .build();
    output.collect(DEAD_LETTERS, new StreamRecord<>(DeadLetters.fit(letter)));
  }

  // The store.

  private boolean isStoreSilent() {
    return store.silentMs() > settings.storeSilentMs();
  }

  private void apply(Arrival arrival) throws DamagedChunkException {
    List<ChunkEntry> entries = arrival.entries();
    RegionTable table = table(arrival.header().table());
    if (store.isFull() && isStoreSilent()) {
      table.skipped(entries.size());
      return;
    }
    Application application = new Application(arrival, table, epoch);
    applying.add(application);
    store.write(table.name(), entries, application);
  }

  /** A chunk whose changes are being written. */
  private final class Application implements RegionStore.Answers {
    private final Arrival chunk;
    private final RegionTable table;
    private final long startedInEpoch;

    Application(Arrival chunk, RegionTable table, long startedInEpoch) {
      this.chunk = chunk;
      this.table = table;
      this.startedInEpoch = startedInEpoch;
    }

    /** The chunk without its way on, for the state. */
    byte[] toState() {
      return codec.forward(chunk.chunk(), Route.direct(settings.region()));
    }

    @Override
    public void answered(KeyChange change, StoreAnswer answer) {
      table.answered(chunk.header(), change, answer, nowMicros());
      if (answer == StoreAnswer.FOREIGN) {
        output.collect(DEAD_LETTERS, new StreamRecord<>(foreign(table.name(), change)));
      }
    }

    @Override
    public void superseded() {
      table.superseded();
    }

    @Override
    public void complete() {
      applying.remove(this);
      if (startedInEpoch == epoch) {
        addKnowledge(chunk);
      }
      table.complete(chunk.header(), chunk.receivedAtMicros(), nowMicros());
    }
  }

  private void addKnowledge(Arrival chunk) {
    ChunkHeader header = chunk.header();
    knowledge.add(
        chunk.partition(),
        new RegionKnowledge.Log(header.table(), header.log()),
        header.coverage());
  }

  private DeadLetter foreign(String table, KeyChange change) {
    return DeadLetter.newBuilder()
        .setTable(table)
        .setStage(Stage.REGION)
        .setReason(
            "feature of key '"
                + change.key()
                + "' of table '"
                + table
                + "', version "
                + change.version()
                + ": its Redis key at "
                + store.address()
                + " holds something that Freshet did not write; remove it, or give Freshet a key"
                + " prefix of its own")
        .setKey(ByteBuffer.wrap(change.key().getBytes(StandardCharsets.UTF_8)))
        .setValue(ByteBuffer.wrap(change.value()))
        .setEventTime(change.eventTimeMs())
        .build();
  }

  private final class StoreEvents implements RegionStore.Listener {
    private boolean isReported;

    @Override
    public void connected() {
      if (!isReported) {
        isReported = true;
        // A new region gets what there is the sooner.
        report();
      }
    }

    @Override
    public void lost(Set<String> servers) {
      epoch++;
      knowledge.clear();
      isReported = false;
      LOG.warn(
          "The online store at {} may have lost data, a server is new, restarted or was emptied: {}. Epoch {}",
          store.address(),
          servers,
          epoch);
    }
  }

  // Output.

  private void report() {
    if (store != null && !store.isIdentified()) {
      return; // What it has lost is not known.
    }
    tables.values().forEach(table -> output.collect(new StreamRecord<>(report(table))));
  }

  private RegionReport report(RegionTable table) {
    return table
        .report(newReport())
        .setSubtask(getRuntimeContext().getTaskInfo().getIndexOfThisSubtask())
        .setParallelism(getRuntimeContext().getTaskInfo().getNumberOfParallelSubtasks())
        .setReportedAtMicros(nowMicros())
        .setApplies(store != null)
        .setEpoch(epoch)
        .setKnowledge(store == null ? List.of() : knowledge.of(table.name()))
        .setRefused(refused)
        .setLinks(relay.reports())
        .build();
  }

  private RegionReport.Builder newReport() {
    return RegionReport.newBuilder()
        .setRegion(settings.region())
        .setReporter(Reporter.REGION)
        .setTable(NO_TABLE)
        .setSubtask(0)
        .setParallelism(1)
        .setReportedAtMicros(0);
  }

  // Checkpoints.

  @Override
  public void snapshotState(StateSnapshotContext context) throws Exception {
    super.snapshotState(context);
    for (int partition : partitions) {
      setCurrentKey(partition);
      knowledgeState.update(knowledgeOf(partition));
      applyingState.update(
          applying.stream()
              .filter(application -> application.chunk.partition() == partition)
              .map(Application::toState)
              .toList());
      unacknowledgedState.update(relay.unacknowledged(partition));
    }
    List<RegionReport> counted = new ArrayList<>();
    counted.add(newReport().setRefused(refused).setLinks(relay.reports()).build());
    tables.values().forEach(table -> counted.add(table.counters(newReport()).build()));
    countersState.update(counted);
    identityState.update(store == null ? List.of() : List.of(store.identity()));
    epochState.update(List.of(epoch));
  }

  /** What is known, as chunks without changes that cover it. */
  private List<byte[]> knowledgeOf(int partition) {
    List<byte[]> chunks = new ArrayList<>();
    knowledge
        .of(partition)
        .forEach((log, coverage) -> chunks.add(codec.encode(covering(log, coverage), List.of())));
    return chunks;
  }

  private ChunkHeader covering(RegionKnowledge.Log log, List<Covered> coverage) {
    return new ChunkHeader(
        0,
        settings.region(),
        log.table(),
        log.id(),
        Purpose.LIVE,
        0,
        0,
        Route.direct(settings.region()),
        Map.of(),
        coverage,
        0,
        0);
  }
}
