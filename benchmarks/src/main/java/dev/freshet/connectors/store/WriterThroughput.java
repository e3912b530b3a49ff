package dev.freshet.connectors.store;

import dev.freshet.benchmarks.CountingOutput;
import dev.freshet.connectors.format.AvroRecordTypeInfo;
import dev.freshet.connectors.format.DeploymentConfig;
import dev.freshet.connectors.format.TableConfig;
import dev.freshet.schemas.FeatureChange;
import dev.freshet.schemas.Operation;
import dev.freshet.schemas.ValueEncoding;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisFuture;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.api.async.RedisAsyncCommands;
import io.lettuce.core.codec.ByteArrayCodec;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.TimeUnit;
import org.apache.flink.api.common.serialization.SerializerConfigImpl;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;
import org.apache.flink.streaming.util.OneInputStreamOperatorTestHarness;

/**
 * Writes a second to a real Redis: through the store writer, which writes if newer and emits each
 * acknowledged change, and as plain {@code SET} in pipelines of the same size from the same client
 * library. The two take turns. Prints one JSON object a round.
 */
public final class WriterThroughput {

  private static final int KEYS = 10_000;

  private final TableConfig table;
  private final DeploymentConfig deployment;
  private final int writes;
  private final byte[] payload;
  private final String[] keys = new String[KEYS];
  private long version = 1;

  private WriterThroughput(
      TableConfig table, DeploymentConfig deployment, int writes, int payloadBytes) {
    this.table = table;
    this.deployment = deployment;
    this.writes = writes;
    this.payload = new byte[payloadBytes];
    for (int i = 0; i < KEYS; i++) {
      keys[i] = String.format("vm-%07d", i);
    }
  }

  /** Takes the table's and the deployment's JSON, writes a round, bytes of a value, and rounds. */
  public static void main(String[] arguments) throws Exception {
    WriterThroughput subjects =
        new WriterThroughput(
            TableConfig.parse(arguments[0]),
            DeploymentConfig.parse(arguments[1]),
            Integer.parseInt(arguments[2]),
            Integer.parseInt(arguments[3]));
    int rounds = Integer.parseInt(arguments[4]);
    // The first round warms the compiler up.
    for (int round = 0; round <= rounds; round++) {
      double begin = subjects.serverMicros();
      double writer = subjects.throughWriter();
      double middle = subjects.serverMicros();
      double plain = subjects.plainSet();
      double end = subjects.serverMicros();
      if (round > 0) {
        System.out.printf(
            Locale.ROOT,
            "{\"writer\": %.1f, \"set\": %.1f, \"writer_cpu\": %.3f, \"set_cpu\": %.3f}%n",
            writer,
            plain,
            (middle - begin) / subjects.writes,
            (end - middle) / subjects.writes);
      }
    }
    System.exit(0);
  }

  private double throughWriter() throws Exception {
    try (OneInputStreamOperatorTestHarness<FeatureChange, FeatureChange> harness =
        new OneInputStreamOperatorTestHarness<>(
            new OnlineStoreWriterFactory(table, deployment, KafkaChangeLog::new, "{}"),
            AvroRecordTypeInfo.FEATURE_CHANGE.createSerializer(new SerializerConfigImpl()))) {
      CountingOutput<FeatureChange> emitted = new CountingOutput<>();
      harness.setOutputCreator(ignored -> emitted);
      harness.open();
      long started = System.nanoTime();
      for (int i = 0; i < writes; i++) {
        harness.processElement(new StreamRecord<>(change(i)));
      }
      harness.getOperator().finish();
      double perSecond = writes / seconds(started);
      if (emitted.records() != writes) {
        throw new IllegalStateException(
            "the writer acknowledged " + emitted.records() + " of " + writes + " writes");
      }
      return perSecond;
    }
  }

  private double plainSet() throws Exception {
    RedisClient client = RedisClient.create(deployment.redis().url());
    try (StatefulRedisConnection<byte[], byte[]> connection =
        client.connect(ByteArrayCodec.INSTANCE)) {
      connection.setAutoFlushCommands(false);
      RedisAsyncCommands<byte[], byte[]> commands = connection.async();
      List<RedisFuture<String>> inFlight = new ArrayList<>();
      long started = System.nanoTime();
      for (int i = 0; i < writes; i++) {
        StoreWrite write = StoreWrite.of(change(i), deployment.redis());
        inFlight.add(commands.set(write.key(), write.value()));
        if (inFlight.size()
            == WriteBuffer.BATCH_WRITES_MAX * BatchSender.BATCHES_IN_FLIGHT_MAX) {
          connection.flushCommands();
          await(inFlight);
        }
      }
      connection.flushCommands();
      await(inFlight);
      return writes / seconds(started);
    } finally {
      client.shutdown(0, 1, TimeUnit.SECONDS);
    }
  }

  /** CPU time that the server has used, microseconds: it hardly depends on who else is running. */
  private double serverMicros() {
    RedisClient client = RedisClient.create(deployment.redis().url());
    try (StatefulRedisConnection<String, String> connection = client.connect()) {
      return connection
              .sync()
              .info("cpu")
              .lines()
              .filter(line -> line.startsWith("used_cpu_user:") || line.startsWith("used_cpu_sys:"))
              .mapToDouble(line -> Double.parseDouble(line.substring(line.indexOf(':') + 1)))
              .sum()
          * 1e6;
    } finally {
      client.shutdown(0, 1, TimeUnit.SECONDS);
    }
  }

  private static void await(List<RedisFuture<String>> inFlight) throws Exception {
    for (RedisFuture<String> write : inFlight) {
      write.get();
    }
    inFlight.clear();
  }

  private FeatureChange change(int i) {
    return FeatureChange.newBuilder()
        .setTable(table.table())
        .setKey(keys[i % KEYS])
        .setVersionTimestamp(version++)
        .setVersionOrigin(1)
        .setEventTime(version)
        .setComputedAt(version)
        .setOperation(Operation.UPSERT)
        .setEncoding(ValueEncoding.FLOAT32_VECTOR)
        .setValue(ByteBuffer.wrap(payload))
        .setRegretRemoved(0)
        .build();
  }

  private static double seconds(long startedNanos) {
    return (System.nanoTime() - startedNanos) / 1e9;
  }
}
