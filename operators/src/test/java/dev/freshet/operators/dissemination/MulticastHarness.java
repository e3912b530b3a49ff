package dev.freshet.operators.dissemination;

import dev.freshet.connectors.chunk.Chunk;
import dev.freshet.connectors.chunk.ChunkCodec;
import dev.freshet.connectors.chunk.ChunkEntry;
import dev.freshet.connectors.chunk.OffsetRanges;
import dev.freshet.connectors.format.AvroRecordTypeInfo;
import dev.freshet.connectors.format.SingleObjectCodec;
import dev.freshet.connectors.kafka.LogRecord;
import dev.freshet.connectors.link.Transport;
import dev.freshet.schemas.DeadLetter;
import dev.freshet.schemas.FeatureChange;
import dev.freshet.schemas.Operation;
import dev.freshet.schemas.RegionReport;
import dev.freshet.schemas.ValueEncoding;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import org.apache.flink.api.common.functions.RuntimeContext;
import org.apache.flink.api.common.serialization.SerializerConfigImpl;
import org.apache.flink.api.common.typeutils.base.StringSerializer;
import org.apache.flink.runtime.checkpoint.OperatorSubtaskState;
import org.apache.flink.runtime.operators.testutils.MockEnvironment;
import org.apache.flink.runtime.operators.testutils.MockEnvironmentBuilder;
import org.apache.flink.streaming.api.operators.TwoInputStreamOperator;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;
import org.apache.flink.streaming.runtime.tasks.mailbox.Mail;
import org.apache.flink.streaming.runtime.tasks.mailbox.TaskMailbox;
import org.apache.flink.streaming.util.AbstractStreamOperatorTestHarness;

/** The multicast operator in Flink's harness; what it sends is kept, and answered by the test. */
final class MulticastHarness implements AutoCloseable {

  static final int MAX_PARALLELISM = 16;
  static final MulticastSettings SETTINGS =
      new MulticastSettings(
          "c:home",
          List.of(new MulticastSettings.Table("t", "changes.t", "log-1", 8, 0, 1)),
          2,
          0.01,
          1_000,
          2_000,
          1_000_000);

  /** What was sent. */
  record Sent(String region, Chunk chunk, List<ChunkEntry> entries, Transport.Callback callback) {}

  private static final SingleObjectCodec<FeatureChange> CHANGES =
      SingleObjectCodec.of(FeatureChange.class);

  private static final class Harness extends AbstractStreamOperatorTestHarness<RegionReport> {
    Harness(MulticastOperatorFactory factory, Shards shards, MockEnvironment environment)
        throws Exception {
      super(factory, environment);
      config.setStatePartitioner(0, value -> shards.get(((LogRecord) value).partition()).key());
      config.setStateKeySerializer(StringSerializer.INSTANCE);
      config.setupNetworkInputs(
          LogRecord.TYPE.createSerializer(new SerializerConfigImpl()),
          LogRecord.TYPE.createSerializer(new SerializerConfigImpl()));
      config.serializeAllConfigs();
    }

    @SuppressWarnings("unchecked") // The factory's operator.
    TwoInputStreamOperator<LogRecord, LogRecord, RegionReport> twoInputs() {
      return (TwoInputStreamOperator<LogRecord, LogRecord, RegionReport>) operator;
    }
  }

  private final class Recorded implements Transports {
    private static final long serialVersionUID = 1L;

    @Override
    public Transport transport(RuntimeContext context) {
      return new Transport() {
        @Override
        public void send(String region, String table, int lane, byte[] bytes, Callback callback) {
          try {
            ChunkCodec codec = new ChunkCodec();
            Chunk chunk = codec.decode(bytes);
            sent.add(new Sent(region, chunk, codec.entries(chunk), callback));
          } catch (Exception e) {
            throw new AssertionError(e);
          }
        }

        @Override
        public void close() {}
      };
    }

    @Override
    public ChangeHistory history(RuntimeContext context) {
      return new ChangeHistory() {
        @Override
        public Map<Integer, Long> ends(MulticastSettings.Table table) {
          return Map.of();
        }

        @Override
        public void read(
            MulticastSettings.Table table, int shard, OffsetRanges ranges, Reader reader) {
          throw new AssertionError("nothing is to be read again");
        }

        @Override
        public void close() {}
      };
    }
  }

  final List<Sent> sent = new ArrayList<>();
  private final Shards shards = new Shards(SETTINGS.tables());
  private final Harness flink;

  private MulticastHarness(int parallelism, int subtask) throws Exception {
    MockEnvironment environment =
        new MockEnvironmentBuilder()
            .setTaskName("multicast")
            .setMaxParallelism(MAX_PARALLELISM)
            .setParallelism(parallelism)
            .setSubtaskIndex(subtask)
            .build();
    flink =
        new Harness(new MulticastOperatorFactory(SETTINGS, new Recorded()), shards, environment);
    flink.setup(
        AvroRecordTypeInfo.of(RegionReport.class).createSerializer(new SerializerConfigImpl()));
  }

  static MulticastHarness open(OperatorSubtaskState state, int parallelism, int subtask)
      throws Exception {
    MulticastHarness harness = new MulticastHarness(parallelism, subtask);
    if (state != null) {
      harness.flink.initializeState(state);
    }
    harness.flink.open();
    return harness;
  }

  /** The part of a state that a subtask of another parallelism restores. */
  static OperatorSubtaskState part(
      OperatorSubtaskState state, int oldParallelism, int parallelism, int subtask) {
    return AbstractStreamOperatorTestHarness.repartitionOperatorState(
        state, MAX_PARALLELISM, oldParallelism, parallelism, subtask);
  }

  /** The bytes of a change event. */
  static byte[] change(String key, long version) {
    return CHANGES.encode(
        FeatureChange.newBuilder()
            .setTable("t")
            .setKey(key)
            .setVersionTimestamp(version)
            .setVersionOrigin(1)
            .setEventTime(1)
            .setComputedAt(1)
            .setOperation(Operation.UPSERT)
            .setEncoding(ValueEncoding.AVRO)
            .setValue(ByteBuffer.wrap(new byte[] {(byte) version}))
            .setRegretRemoved(1)
            .build());
  }

  void read(int shard, long offset, byte[] value) throws Exception {
    StreamRecord<LogRecord> element = new StreamRecord<>(new LogRecord(shard, offset, value));
    TwoInputStreamOperator<LogRecord, LogRecord, RegionReport> operator = flink.twoInputs();
    operator.setKeyContextElement1(element);
    operator.processElement1(element);
  }

  void control(byte[] message) throws Exception {
    flink.twoInputs().processElement2(new StreamRecord<>(new LogRecord(0, 0, message)));
  }

  void plan(String json) throws Exception {
    control(json.getBytes(StandardCharsets.UTF_8));
  }

  /** Lets time pass, for timers; what is due by the wall clock is due by that. */
  void elapse(long toMs) throws Exception {
    flink.setProcessingTime(toMs);
    runMail();
  }

  void runMail() throws Exception {
    TaskMailbox mailbox = flink.getTaskMailbox();
    Optional<Mail> mail = mailbox.tryTake(TaskMailbox.MIN_PRIORITY);
    while (mail.isPresent()) {
      mail.get().run();
      mail = mailbox.tryTake(TaskMailbox.MIN_PRIORITY);
    }
  }

  void answer(Sent chunk, Exception failure) throws Exception {
    sent.remove(chunk);
    chunk.callback().done(failure);
    runMail();
  }

  /** Keys that wait on links, by the last report, which is made for it. */
  long waits() throws Exception {
    return lastReport().getLinks().stream()
        .mapToLong(link -> link.getBacklogKeys() + link.getInFlightBytes())
        .sum();
  }

  /** The last report, which is made for it. */
  RegionReport lastReport() throws Exception {
    elapse(flink.getProcessingTime() + SETTINGS.reportIntervalMs());
    return reports().get(reports().size() - 1);
  }

  OperatorSubtaskState snapshot() throws Exception {
    return flink.snapshot(1, 1);
  }

  List<RegionReport> reports() {
    return flink.extractOutputValues();
  }

  List<DeadLetter> deadLetters() {
    return flink.getSideOutput(MulticastOperator.DEAD_LETTERS) == null
        ? List.of()
        : flink.getSideOutput(MulticastOperator.DEAD_LETTERS).stream()
            .map(StreamRecord::getValue)
            .toList();
  }

  /** The newest version of each key that was sent to a region. */
  Map<String, Long> sentTo(String region) {
    Map<String, Long> versions = new TreeMap<>();
    for (Sent chunk : sent) {
      if (chunk.region().equals(region)) {
        for (ChunkEntry entry : chunk.entries()) {
          versions.merge(
              entry.change().key(), entry.change().version().timestampMicros(), Math::max);
        }
      }
    }
    return versions;
  }

  @Override
  public void close() throws Exception {
    flink.close();
  }
}
