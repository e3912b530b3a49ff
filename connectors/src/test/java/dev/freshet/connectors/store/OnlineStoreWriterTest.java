package dev.freshet.connectors.store;

import static dev.freshet.connectors.testing.Changes.delete;
import static dev.freshet.connectors.testing.Changes.upsert;
import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.freshet.connectors.record.Version;
import dev.freshet.connectors.testing.Await;
import dev.freshet.connectors.testing.TestConfigs;
import dev.freshet.connectors.testing.TestRedis;
import dev.freshet.schemas.FeatureChange;
import dev.freshet.schemas.Stage;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.flink.runtime.checkpoint.OperatorSubtaskState;
import org.apache.flink.streaming.api.watermark.Watermark;
import org.apache.flink.streaming.runtime.watermarkstatus.WatermarkStatus;
import org.apache.flink.streaming.util.AbstractStreamOperatorTestHarness;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * The writer in Flink's harness, against a real Redis that is killed and started as a test wants.
 * What must hold: nothing is lost, nothing is emitted before the store has it, and progress tells
 * the truth.
 */
@Timeout(120)
final class OnlineStoreWriterTest {

  private TestRedis redis;
  private String deployment;

  @BeforeEach
  void startRedis() throws Exception {
    redis = TestRedis.start();
    deployment = TestConfigs.deployment(redis.url(), false);
  }

  @AfterEach
  void stopRedis() throws Exception {
    redis.close();
  }

  private StoredValue stored(String key) {
    byte[] value = raw(key);
    return value == null ? null : StoreLayout.decode(value);
  }

  private byte[] raw(String key) {
    try (TestRedis.Inspector inspector = redis.inspect()) {
      return inspector.commands().get(StoreLayout.key("", TestConfigs.TABLE, key));
    }
  }

  private void flush() {
    try (TestRedis.Inspector inspector = redis.inspect()) {
      inspector.commands().flushall();
    }
  }

  private byte[] definition() {
    try (TestRedis.Inspector inspector = redis.inspect()) {
      return inspector
          .commands()
          .hget(TableRegistry.KEY.getBytes(UTF_8), TestConfigs.TABLE.getBytes(UTF_8));
    }
  }

  @Test
  void entersTheTableIntoTheStoreAndIntoOneThatCameBackEmpty() throws Exception {
    try (WriterHarness writer = WriterHarness.open(deployment)) {
      writer.write(upsert("k", 1, 1));
      writer.awaitChanges(1);
      writer.await("the table is registered", () -> definition() != null);
      redis.kill();
      redis.restart();
      writer.await("the table is registered again", () -> definition() != null);
    }
  }

  @Test
  void writesInBatchesAndEmitsWhatTheStoreAcknowledged() throws Exception {
    try (WriterHarness writer = WriterHarness.open(deployment)) {
      for (int i = 0; i < 1_000; i++) {
        writer.write(upsert("k" + i, i + 1, i));
      }
      writer.awaitChanges(1_000);

      assertThat(writer.changes()).extracting(FeatureChange::getKey).doesNotHaveDuplicates();
      assertThat(stored("k999").version()).isEqualTo(new Version(1_000, 1));
      assertThat(stored("k999").value()).hasSize(Float.BYTES);
    }
  }

  @Test
  void aLoneWriteLeavesAfterTheLingerTime() throws Exception {
    try (WriterHarness writer = WriterHarness.open(deployment)) {
      writer.write(upsert("k", 1, 1));
      writer.runMail();
      assertThat(writer.changes()).isEmpty();

      writer.awaitChanges(1);
      assertThat(stored("k").version()).isEqualTo(new Version(1, 1));
    }
  }

  @Test
  void emitsADuplicateAgainButNotAStaleWrite() throws Exception {
    try (WriterHarness writer = WriterHarness.open(deployment)) {
      writer.write(upsert("k", 5, 5));
      writer.awaitChanges(1);
      writer.write(upsert("k", 5, 5));
      writer.write(upsert("k", 4, 4));
      writer.write(upsert("other", 1, 1));
      writer.awaitChanges(3);

      assertThat(writer.changes())
          .extracting(FeatureChange::getVersionTimestamp)
          .containsExactly(5L, 5L, 1L);
      assertThat(stored("k").version().timestampMicros()).isEqualTo(5);
    }
  }

  @Test
  void aTableMayKeepSeveralVersions() throws Exception {
    try (WriterHarness writer = WriterHarness.open(keeping(3), deployment, null, 1, 0)) {
      writer.write(upsert("k", 2, 2));
      writer.write(upsert("k", 5, 5));
      writer.write(upsert("k", 4, 4));
      writer.write(upsert("k", 2, 2));
      writer.write(upsert("k", 3, 3));
      writer.write(upsert("k", 1, 1));
      writer.flink.processWatermark(10);
      writer.await("all is settled", () -> writer.watermarks().contains(10L));

      assertThat(versions("k")).containsExactly(5L, 4L, 3L);
      // What came behind a newer version would be the last of its key in the log.
      assertThat(writer.changes())
          .extracting(FeatureChange::getVersionTimestamp)
          .containsExactly(2L, 5L, 2L);
      assertThat(writer.metrics().writesKeptAsOlder.getCount()).isEqualTo(2);
      assertThat(writer.metrics().writesDuplicate.getCount()).isOne();
      assertThat(writer.metrics().writesStale.getCount()).isOne();
    }
  }

  private static String keeping(int versions) {
    return TestConfigs.table("\"keep_versions\": 1", "\"keep_versions\": " + versions);
  }

  /** Timestamps of the versions that a key has, newest first. */
  private List<Long> versions(String key) {
    return StoreLayout.decodeAll(raw(key)).stream()
        .map(stored -> stored.version().timestampMicros())
        .toList();
  }

  @Test
  void aRestoreBringsBackTheVersionsThatTheLogHas() throws Exception {
    try (WriterHarness writer = WriterHarness.open(keeping(3), deployment, null, 1, 0)) {
      for (long version = 1; version <= 3; version++) {
        writer.write(upsert("whole", version, version));
        writer.write(upsert("compacted", version, version));
      }
      writer.awaitChanges(6);
      assertThat(versions("compacted")).containsExactly(3L, 2L, 1L);
      writer.changes().stream()
          .filter(change -> change.getKey().equals("whole") || change.getVersionTimestamp() == 3)
          .forEach(writer.log::append);
      redis.kill();
      writer.write(upsert("whole", 4, 4));
      redis.restart();
      writer.await("the log was read once", () -> writer.log.readings() == 1);
      writer.awaitChanges(7);

      assertThat(versions("whole")).containsExactly(4L, 3L, 2L);
      assertThat(versions("compacted")).containsExactly(3L);
    }
  }

  @Test
  void aLaterWriteOfAKeyDoesNotOvertakeOneThatIsTriedAgain() throws Exception {
    try (WriterHarness writer = WriterHarness.open(deployment);
        TestRedis.Inspector inspector = redis.inspect()) {
      inspector.commands().replicaof("127.0.0.1", 1);
      writer.write(upsert("k", 1, 1));
      // Its next attempt is a second away, so that a write that did not wait would be first.
      writer.await("it was tried often", () -> writer.retries() >= 7);
      inspector.commands().replicaofNoOne();
      writer.write(upsert("k", 2, 2));
      writer.write(upsert("other", 3, 3));
      writer.awaitChanges(3);

      assertThat(writer.changes())
          .extracting(FeatureChange::getVersionTimestamp)
          .as("others don't wait")
          .containsExactly(3L, 1L, 2L);
      assertThat(writer.metrics().writesStale.getCount()).isZero();
    }
  }

  @Test
  void aDeleteLeavesATombstoneThatExpires() throws Exception {
    try (WriterHarness writer = WriterHarness.open(deployment);
        TestRedis.Inspector inspector = redis.inspect()) {
      writer.write(upsert("k", 5, 5));
      writer.write(delete("k", 6));
      writer.write(upsert("k", 4, 4));
      writer.awaitChanges(2);

      assertThat(stored("k").tombstone()).isTrue();
      assertThat(stored("k").value()).isEmpty();
      byte[] key = StoreLayout.key("", TestConfigs.TABLE, "k");
      assertThat(inspector.commands().pttl(key)).isBetween(86_000_000L, 86_400_000L);
      writer.write(upsert("k", 7, 7));
      writer.awaitChanges(3);
      assertThat(inspector.commands().pttl(key)).isEqualTo(-1);
    }
  }

  @Test
  void whatAnotherProgramWroteIsADeadLetterAndStays() throws Exception {
    byte[] foreign = "not ours".getBytes(UTF_8);
    try (TestRedis.Inspector inspector = redis.inspect()) {
      inspector.commands().set(StoreLayout.key("", TestConfigs.TABLE, "string"), foreign);
      inspector.commands().set(StoreLayout.key("", TestConfigs.TABLE, "empty"), new byte[0]);
      inspector.commands().lpush(StoreLayout.key("", TestConfigs.TABLE, "list"), foreign);
    }
    try (WriterHarness writer = WriterHarness.open(deployment)) {
      writer.write(upsert("string", 1, 1));
      writer.write(upsert("good", 1, 1));
      writer.write(upsert("list", 1, 1));
      writer.write(upsert("empty", 1, 1));
      writer.flink.processWatermark(10);
      writer.await("the watermark passes", () -> writer.watermarks().contains(10L));

      assertThat(writer.changes()).extracting(FeatureChange::getKey).containsExactly("good");
      assertThat(writer.deadLetters())
          .hasSize(3)
          .allSatisfy(
              letter -> {
                assertThat(letter.getStage()).isEqualTo(Stage.STORE);
                assertThat(letter.getReason()).contains("cpu_stl:", "prefix of its own");
              });
      assertThat(raw("string")).isEqualTo(foreign);
      assertThat(raw("empty")).isEmpty();
    }
  }

  @Test
  void aValueOverTheLimitIsADeadLetter() throws Exception {
    String table = TestConfigs.table("\"max_value_bytes\": 1048576", "\"max_value_bytes\": 8");
    try (WriterHarness writer = WriterHarness.open(table, deployment, null, 1, 0)) {
      FeatureChange large = upsert("large", 1, 1);
      large.setValue(ByteBuffer.allocate(12));
      writer.write(large);
      writer.write(upsert("small", 1, 1));
      writer.awaitChanges(1);

      assertThat(writer.changes()).extracting(FeatureChange::getKey).containsExactly("small");
      assertThat(writer.deadLetters()).hasSize(1);
      assertThat(writer.deadLetters().get(0).getReason())
          .contains("12 bytes", "max_value_bytes, 8", "key 'large'");
    }
  }

  @Test
  void holdsTheWatermarkUntilTheWritesBeforeItAreAcknowledged() throws Exception {
    try (WriterHarness writer = WriterHarness.open(deployment)) {
      writer.write(upsert("warm", 1, 1));
      writer.awaitChanges(1);
      pause(true);
      writer.write(upsert("k", 2, 2));
      writer.flink.processWatermark(100);
      writer.linger();
      writer.runMail();
      assertThat(writer.watermarks()).isEmpty();
      assertThat(writer.progress()).isEmpty();

      pause(false);
      writer.await("the watermark passes", () -> writer.watermarks().contains(100L));
      List<Object> output = new ArrayList<>(writer.flink.getOutput());
      assertThat(output.get(output.size() - 1)).isEqualTo(new Watermark(100));
      assertThat(writer.changes()).hasSize(2);
    }
  }

  /** Stops the server from answering, and lets it answer again. */
  private void pause(boolean paused) throws Exception {
    redis.signal(paused ? "STOP" : "CONT");
  }

  @Test
  void idlenessKeepsItsPlaceAmongTheWatermarks() throws Exception {
    try (WriterHarness writer = WriterHarness.open(deployment)) {
      writer.write(upsert("k", 2, 2));
      writer.flink.processWatermark(100);
      writer.flink.processWatermarkStatus(WatermarkStatus.IDLE);
      assertThat(writer.flink.getOutput()).isEmpty();
      writer.await("all passes", () -> writer.flink.getOutput().size() == 3);

      assertThat(new ArrayList<>(writer.flink.getOutput()).subList(1, 3))
          .containsExactly(new Watermark(100), WatermarkStatus.IDLE);
    }
  }

  @Test
  void losesNothingWhenRedisIsKilledAndComesBackEmpty() throws Exception {
    try (WriterHarness writer = WriterHarness.open(deployment)) {
      Map<String, Long> newest = new HashMap<>();
      for (int i = 0; i < 1_000; i++) {
        write(writer, newest, "k" + i % 300, i + 1);
      }
      // What is on its way when Redis dies must leave room for what is written after that.
      writer.await("two batches are left", () -> writer.pending() <= 400);
      redis.kill();
      // Fewer than stop the input, since nothing restarts Redis while it is stopped.
      for (int i = 1_000; i < 1_200; i++) {
        write(writer, newest, "k" + i % 300, i + 1);
      }
      writer.flink.processWatermark(1_200);
      writer.linger();
      writer.runMail();
      assertThat(writer.watermarks()).isEmpty();

      redis.restart();
      writer.await("every write is acknowledged", () -> writer.pending() == 0);
      writer.changes().forEach(writer.log::append);
      assertThat(writer.watermarks()).isEmpty();
      writer.completeCheckpoints(2);
      writer.await("the restore ends", () -> writer.watermarks().contains(1_200L));

      assertThat(writer.log.readings()).isEqualTo(2);
      newest.forEach(
          (key, version) ->
              assertThat(stored(key).version()).as(key).isEqualTo(new Version(version, 1)));
      assertThat(writer.changes())
          .extracting(FeatureChange::getVersionTimestamp)
          .containsAll(newest.values());
    }
  }

  private static void write(
      WriterHarness writer, Map<String, Long> newest, String key, long version) throws Exception {
    writer.write(upsert(key, version, version));
    newest.put(key, version);
  }

  @Test
  void aRestoreReadsTheLogAgainOnceTheLastChangesAreInIt() throws Exception {
    try (WriterHarness writer = WriterHarness.open(deployment)) {
      writer.write(upsert("early", 1, 1));
      writer.write(upsert("late", 2, 2));
      writer.awaitChanges(2);
      writer.log.append(writer.changes().get(0));
      writer.log.failNext(1);
      redis.kill();
      redis.restart();
      writer.await("the log was read once", () -> writer.log.readings() == 1);
      assertThat(stored("early").version().timestampMicros()).isEqualTo(1);
      assertThat(stored("late")).isNull();

      // The sink writes its buffer out, and the checkpoints tell.
      writer.log.append(writer.changes().get(1));
      writer.flink.processWatermark(50);
      writer.completeCheckpoints(1);
      writer.linger();
      writer.runMail();
      assertThat(writer.watermarks()).isEmpty();
      writer.completeCheckpoints(1);
      writer.await("the restore ends", () -> writer.watermarks().contains(50L));

      assertThat(stored("late").version().timestampMicros()).isEqualTo(2);
      assertThat(writer.changes()).as("a restored value is no new change").hasSize(2);
    }
  }

  @Test
  void whatAFlushTookAwayIsRestored() throws Exception {
    OperatorSubtaskState state;
    try (WriterHarness writer = WriterHarness.open(deployment)) {
      writer.log.append(upsert("k", 1, 1));
      writer.write(upsert("k", 1, 1));
      writer.awaitChanges(1);
      flush();
      writer.await("the loss is noticed", () -> writer.log.readings() == 1);
      writer.await("the value is back", () -> stored("k") != null);
      writer.flink.processWatermark(10);
      assertThat(writer.progress()).as("while the last changes are not restored").isEmpty();
      writer.completeCheckpoints(2);
      writer.await("the restore ends", () -> writer.progress().size() == 1);
      assertThat(writer.log.readings()).as("one loss, two readings").isEqualTo(2);
      state = writer.flink.snapshot(9, 9);
    }
    flush();
    try (WriterHarness writer = WriterHarness.open(TestConfigs.table(), deployment, state, 1, 0)) {
      writer.log.append(upsert("k", 1, 1));
      writer.await("a flush before the start is noticed", () -> writer.log.readings() == 1);
    }
  }

  @Test
  void aLossDuringAFailoverOfTheJobIsRestored() throws Exception {
    OperatorSubtaskState state;
    try (WriterHarness writer = WriterHarness.open(deployment)) {
      writer.write(upsert("k", 1, 1));
      writer.awaitChanges(1);
      state = writer.flink.snapshot(1, 1);
    }
    redis.kill();
    redis.restart();
    try (WriterHarness writer = WriterHarness.open(TestConfigs.table(), deployment, state, 1, 0)) {
      writer.log.append(upsert("k", 1, 1));
      writer.flink.processWatermark(10);
      writer.await("the log was read once", () -> writer.log.readings() == 1);
      assertThat(stored("k").version().timestampMicros()).isEqualTo(1);
      assertThat(writer.progress()).isEmpty();
      state = writer.flink.snapshot(2, 2);
    }
    // The restore was under way, so it goes on in the next attempt, too.
    try (WriterHarness writer = WriterHarness.open(TestConfigs.table(), deployment, state, 1, 0)) {
      writer.flink.processWatermark(10);
      writer.await("the log is read", () -> writer.log.readings() == 1);
      assertThat(writer.progress()).isEmpty();
      writer.completeCheckpoints(2);
      writer.await("the restore ends", () -> writer.progress().size() == 1);
    }
  }

  @Test
  void theSameServerAfterAFailoverNeedsNoRestore() throws Exception {
    OperatorSubtaskState state;
    try (WriterHarness writer = WriterHarness.open(deployment)) {
      writer.write(upsert("k", 1, 1));
      writer.awaitChanges(1);
      state = writer.flink.snapshot(1, 1);
    }
    try (WriterHarness writer = WriterHarness.open(TestConfigs.table(), deployment, state, 1, 0)) {
      writer.flink.processWatermark(10);
      writer.await("the watermark passes", () -> writer.watermarks().contains(10L));
      assertThat(writer.log.readings()).isZero();
      assertThat(writer.progress().get(0).getWrites()).as("writes since the first start").isOne();
    }
  }

  @Test
  void writesWithoutAnAcknowledgementAreInTheSnapshot() throws Exception {
    OperatorSubtaskState state;
    try (WriterHarness writer = WriterHarness.open(deployment)) {
      writer.write(upsert("done", 1, 1));
      writer.awaitChanges(1);
      redis.kill();
      for (int i = 0; i < 250; i++) {
        writer.write(upsert("k" + i, i + 10, i));
      }
      state = writer.flink.snapshot(1, 1);
    }
    redis.restart();
    try (WriterHarness writer = WriterHarness.open(TestConfigs.table(), deployment, state, 1, 0)) {
      writer.awaitChanges(250);
      assertThat(writer.changes()).extracting(FeatureChange::getKey).doesNotContain("done");
      assertThat(stored("k249").version().timestampMicros()).isEqualTo(259);
    }
  }

  @Test
  void pendingWritesSurviveRescaling() throws Exception {
    redis.kill();
    List<OperatorSubtaskState> states = new ArrayList<>();
    for (int subtask = 0; subtask < 2; subtask++) {
      try (WriterHarness writer = open(null, 2, subtask)) {
        for (int i = subtask; i < 40; i += 2) {
          writer.write(upsert("k" + i, i + 1, i));
        }
        states.add(writer.flink.snapshot(1, 1));
      }
    }
    states = rescaleWithoutRedis(states, 2, 4);
    redis.restart();
    OperatorSubtaskState all =
        AbstractStreamOperatorTestHarness.repackageState(
            states.toArray(OperatorSubtaskState[]::new));
    OperatorSubtaskState one =
        AbstractStreamOperatorTestHarness.repartitionOperatorState(all, 128, 4, 1, 0);
    try (WriterHarness writer = open(one, 1, 0)) {
      writer.awaitChanges(40);
      assertThat(writer.changes())
          .extracting(FeatureChange::getKey)
          .hasSize(40)
          .doesNotHaveDuplicates();
      for (int i = 0; i < 40; i++) {
        assertThat(stored("k" + i).version().timestampMicros()).isEqualTo(i + 1);
      }
    }
  }

  private List<OperatorSubtaskState> rescaleWithoutRedis(
      List<OperatorSubtaskState> states, int from, int to) throws Exception {
    OperatorSubtaskState all =
        AbstractStreamOperatorTestHarness.repackageState(
            states.toArray(OperatorSubtaskState[]::new));
    List<OperatorSubtaskState> rescaled = new ArrayList<>();
    for (int subtask = 0; subtask < to; subtask++) {
      OperatorSubtaskState own =
          AbstractStreamOperatorTestHarness.repartitionOperatorState(all, 128, from, to, subtask);
      try (WriterHarness writer = open(own, to, subtask)) {
        assertThat(writer.pending()).isEqualTo(40 / to);
        rescaled.add(writer.flink.snapshot(2, 2));
      }
    }
    return rescaled;
  }

  private WriterHarness open(OperatorSubtaskState state, int parallelism, int subtask)
      throws Exception {
    return WriterHarness.open(TestConfigs.table(), deployment, state, parallelism, subtask);
  }

  @Test
  void inputStopsWhileTooManyBatchesWait() throws Exception {
    try (WriterHarness writer = WriterHarness.open(deployment)) {
      pause(true);
      int room = (BatchSender.BATCHES_IN_FLIGHT_MAX + 1) * WriteBuffer.BATCH_WRITES_MAX;
      AtomicInteger accepted = new AtomicInteger();
      Thread healer =
          new Thread(
              () -> {
                try {
                  Await.until("the input has stopped", () -> accepted.get() >= room - 1);
                  redis.signal("CONT");
                } catch (Exception e) {
                  throw new IllegalStateException(e);
                }
              });
      healer.start();
      for (int i = 0; i < 2 * room; i++) {
        writer.write(upsert("k" + i, i + 1, i));
        accepted.incrementAndGet();
        assertThat(writer.pending()).isLessThanOrEqualTo(room);
      }
      healer.join();
      writer.awaitChanges(2 * room);
    }
  }

  @Test
  void finishWritesAllThatWaits() throws Exception {
    WriterHarness writer = WriterHarness.open(deployment);
    writer.write(upsert("k", 1, 1));
    writer.flink.processWatermark(Long.MAX_VALUE);
    // The harness finishes the operator as a task does at the end of its input, then closes it.
    writer.flink.close();

    assertThat(writer.changes()).hasSize(1);
    assertThat(writer.watermarks()).containsExactly(Long.MAX_VALUE);
    assertThat(stored("k").version().timestampMicros()).isEqualTo(1);
  }

  @Test
  void aWrongPasswordFailsTheJobWithTheFix() throws Exception {
    try (TestRedis secured = TestRedis.start("--requirepass", "right")) {
      for (String user : List.of("", ":wrong@")) {
        String url = secured.url().replace("redis://", "redis://" + user);
        try (WriterHarness writer = WriterHarness.open(TestConfigs.deployment(url, false))) {
          writer.write(upsert("k", 1, 1));
          assertThatThrownBy(() -> writer.awaitChanges(1))
              .isInstanceOf(StoreException.class)
              .hasMessageContaining("127.0.0.1:" + secured.port())
              .hasMessageContaining("password")
              .hasMessageNotContaining("wrong@");
        }
      }
    }
  }

  @Test
  void aReadOnlyServerIsWaitedFor() throws Exception {
    try (WriterHarness writer = WriterHarness.open(deployment);
        TestRedis.Inspector inspector = redis.inspect()) {
      inspector.commands().replicaof("127.0.0.1", 1);
      writer.write(upsert("k", 1, 1));
      writer.await("a write was tried again", () -> writer.retries() > 0);
      assertThat(writer.changes()).isEmpty();
      inspector.commands().replicaofNoOne();
      writer.awaitChanges(1);
    }
  }

  @Test
  void aFullServerIsWaitedFor() throws Exception {
    try (WriterHarness writer = WriterHarness.open(deployment);
        TestRedis.Inspector inspector = redis.inspect()) {
      inspector.commands().configSet("maxmemory", "1");
      writer.write(upsert("k", 1, 1));
      writer.await("a write was tried again", () -> writer.retries() > 0);
      assertThat(writer.changes()).isEmpty();
      inspector.commands().configSet("maxmemory", "0");
      writer.awaitChanges(1);
    }
  }

  @Test
  void aScriptThatTheServerForgotIsSentAgain() throws Exception {
    try (WriterHarness writer = WriterHarness.open(deployment);
        TestRedis.Inspector inspector = redis.inspect()) {
      writer.write(upsert("k", 1, 1));
      writer.awaitChanges(1);
      inspector.commands().scriptFlush();
      writer.write(upsert("k", 2, 2));
      writer.awaitChanges(2);
      assertThat(writer.retries()).isZero();
    }
  }

  @Test
  void progressFollowsTheWatermarkAndCountsWrites() throws Exception {
    try (WriterHarness writer = WriterHarness.open(deployment)) {
      writer.write(upsert("a", 1, 1));
      writer.flink.processWatermark(10);
      writer.write(upsert("b", 2, 2));
      writer.flink.processWatermark(20);
      writer.await("both watermarks pass", () -> writer.watermarks().contains(20L));

      assertThat(writer.watermarks()).containsExactly(10L, 20L);
      assertThat(writer.progress()).hasSize(2);
      assertThat(writer.progress().get(1).getWatermark()).isEqualTo(20);
      assertThat(writer.progress().get(1).getWrites()).isEqualTo(2);
      assertThat(writer.progress().get(1).getRegion()).isEqualTo("local:home");
      assertThat(writer.progress().get(1).getParallelism()).isEqualTo(1);
    }
  }
}
