package dev.freshet.operators.dissemination;

import dev.freshet.connectors.chunk.ChunkCodec;
import dev.freshet.connectors.chunk.ChunkEntry;
import dev.freshet.connectors.chunk.ChunkHeader;
import dev.freshet.connectors.chunk.Covered;
import dev.freshet.connectors.chunk.KeyChange;
import dev.freshet.connectors.chunk.OffsetRanges;
import dev.freshet.connectors.chunk.Route;
import dev.freshet.connectors.format.AvroRecordTypeInfo;
import dev.freshet.connectors.format.RegionsConfig;
import dev.freshet.connectors.kafka.LogRecord;
import dev.freshet.connectors.record.Version;
import dev.freshet.connectors.testing.Await;
import dev.freshet.schemas.DeadLetter;
import dev.freshet.schemas.Purpose;
import dev.freshet.schemas.RegionReport;
import dev.freshet.schemas.ShardKnowledge;
import dev.freshet.schemas.ValueEncoding;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.Callable;
import org.apache.flink.api.common.serialization.SerializerConfigImpl;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.runtime.checkpoint.OperatorSubtaskState;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;
import org.apache.flink.streaming.runtime.tasks.mailbox.Mail;
import org.apache.flink.streaming.runtime.tasks.mailbox.TaskMailbox;
import org.apache.flink.streaming.util.AbstractStreamOperatorTestHarness;
import org.apache.flink.streaming.util.KeyedOneInputStreamOperatorTestHarness;

/** A region's operator in Flink's harness, whose mail and timers run while a test waits. */
final class RegionHarness implements AutoCloseable {

  static final String REGION = "c:here";
  static final String TABLE = "t";
  static final String LOG = "log-1";
  static final Route HERE = Route.direct(REGION);

  private static final int MAX_PARALLELISM = 128;
  private static final ChunkCodec CODEC = new ChunkCodec();

  final RecordedTransport transport = new RecordedTransport();
  final KeyedOneInputStreamOperatorTestHarness<Integer, LogRecord, RegionReport> flink;
  private long offset;

  private RegionHarness(String redisUrl, String settings, int parallelism, int subtask)
      throws Exception {
    flink =
        new KeyedOneInputStreamOperatorTestHarness<>(
            new RegionOperatorFactory(
                RegionSettings.parse(settings), config(redisUrl), context -> transport),
            LogRecord::partition,
            Types.INT,
            MAX_PARALLELISM,
            parallelism,
            subtask);
    flink.setup(
        AvroRecordTypeInfo.of(RegionReport.class).createSerializer(new SerializerConfigImpl()));
  }

  /** A region with this store, or a waypoint if there is none. */
  static RegionHarness open(String redisUrl) throws Exception {
    return open(redisUrl, settings(redisUrl != null, TABLE), List.of(), 1, 0);
  }

  /**
   * A subtask of a region.
   *
   * @param states of all subtasks of an earlier run; empty for the first
   */
  static RegionHarness open(
      String redisUrl,
      String settings,
      List<OperatorSubtaskState> states,
      int parallelism,
      int subtask)
      throws Exception {
    RegionHarness harness = new RegionHarness(redisUrl, settings, parallelism, subtask);
    if (!states.isEmpty()) {
      harness.flink.initializeState(
          AbstractStreamOperatorTestHarness.repartitionOperatorState(
              AbstractStreamOperatorTestHarness.repackageState(
                  states.toArray(new OperatorSubtaskState[0])),
              MAX_PARALLELISM,
              states.size(),
              parallelism,
              subtask));
    }
    harness.flink.open();
    return harness;
  }

  static String settings(boolean applies, String table) {
    return String.format(
        """
        {"region": "%s", "applies": %s, "report_interval_ms": 5, "store_silent_ms": 200,
         "tables": [{"table": "%s", "keep_versions": 1, "definition": "{\\"ttl_ms\\": 7}"}]}
        """,
        REGION, applies, table);
  }

  private static RegionsConfig config(String redisUrl) {
    return RegionsConfig.parse(
        String.format(
            """
            {"region": "%s", "home_region": "c:home", "role": "%s", "inbox_topic": "inbox.c.here",
             "dead_letters_topic": "d", "progress_topic": "progress", "group": "g",
             "kafka": {"bootstrap.servers": "h:1"}, "home_kafka": {"bootstrap.servers": "h:1"},
             "redis": %s}
            """,
            REGION,
            redisUrl == null ? RegionsConfig.WAYPOINT : RegionsConfig.DESTINATION,
            redisUrl == null
                ? "null"
                : String.format(
                    "{\"url\": \"%s\", \"cluster\": false, \"prefix\": \"\"}", redisUrl)));
  }

  // Chunks.

  static ChunkEntry upsert(int shard, long at, String key, long version) {
    return upsert(shard, at, key, version, new byte[] {0, 0, (byte) version, 64});
  }

  static ChunkEntry upsert(int shard, long at, String key, long version, byte[] value) {
    long now = System.currentTimeMillis();
    return new ChunkEntry(
        shard,
        at,
        new KeyChange(
            key,
            new Version(version, 1),
            now - 10_000,
            now - 1_000,
            ValueEncoding.FLOAT32_VECTOR.ordinal(),
            false,
            1,
            value));
  }

  static ChunkEntry delete(int shard, long at, String key, long version) {
    return new ChunkEntry(
        shard,
        at,
        new KeyChange(key, new Version(version, 1), 1, 1, KeyChange.DELETE, false, 0, new byte[0]));
  }

  static ChunkHeader header(String table, Purpose purpose, Route route, List<Covered> coverage) {
    long now = System.currentTimeMillis();
    return new ChunkHeader(
        1,
        "c:home",
        table,
        LOG,
        purpose,
        1,
        0,
        route,
        Map.of(),
        coverage,
        (now - 50) * 1_000,
        now + 60_000);
  }

  static byte[] live(Route route, List<Covered> coverage, ChunkEntry... entries) {
    return CODEC.encode(header(TABLE, Purpose.LIVE, route, coverage), List.of(entries));
  }

  /** A live chunk of shard 0 for this region alone. */
  static byte[] live(long after, long upto, ChunkEntry... entries) {
    return live(HERE, List.of(new Covered(0, after, upto)), entries);
  }

  void receive(byte[] chunk) throws Exception {
    receive(0, chunk);
  }

  void receive(int partition, byte[] chunk) throws Exception {
    flink.processElement(new StreamRecord<>(new LogRecord(partition, offset++, chunk)));
  }

  // Time.

  /** Runs the mail that is there, and the timers that are due. */
  void run() throws Exception {
    flink.setProcessingTime(System.currentTimeMillis());
    for (Optional<Mail> mail = take(); mail.isPresent(); mail = take()) {
      mail.get().run();
    }
  }

  private Optional<Mail> take() {
    return flink.getTaskMailbox().tryTake(TaskMailbox.MIN_PRIORITY);
  }

  void await(String what, Callable<Boolean> condition) throws Exception {
    Await.until(
        what,
        () -> {
          run();
          return condition.call();
        });
  }

  /** Waits for a report that was made after this call. */
  RegionReport awaitReport() throws Exception {
    int before = reports().size();
    await("it reports", () -> reports().size() > before);
    return last();
  }

  void awaitKnown(long after, long upto) throws Exception {
    await(
        "it knows " + after + ".." + upto,
        () -> !reports().isEmpty() && known(last(), 0).contains(after, upto));
  }

  // Output.

  List<RegionReport> reports() {
    return flink.extractOutputValues();
  }

  RegionReport last() {
    List<RegionReport> reports = reports();
    return reports.get(reports.size() - 1);
  }

  /** What a report says that the region has of a shard. */
  static OffsetRanges known(RegionReport report, int shard) {
    OffsetRanges known = new OffsetRanges();
    for (ShardKnowledge knowledge : report.getKnowledge()) {
      if (knowledge.getShard() == shard && knowledge.getLog().equals(LOG)) {
        known.addAll(OffsetRanges.fromList(knowledge.getRanges()));
      }
    }
    return known;
  }

  List<DeadLetter> deadLetters() {
    Collection<StreamRecord<DeadLetter>> letters = flink.getSideOutput(RegionOperator.DEAD_LETTERS);
    return letters == null ? List.of() : letters.stream().map(StreamRecord::getValue).toList();
  }

  /** Ends the task as a failure would. */
  @Override
  public void close() throws Exception {
    flink.getOperator().close();
    flink.getEnvironment().close();
  }
}
