package dev.freshet.connectors.store;

import static dev.freshet.connectors.testing.Changes.upsert;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.freshet.connectors.record.Version;
import dev.freshet.connectors.testing.Await;
import dev.freshet.connectors.testing.TestConfigs;
import dev.freshet.connectors.testing.TestRedis;
import dev.freshet.connectors.testing.TestRedis.Inspector;
import dev.freshet.schemas.FeatureChange;
import io.lettuce.core.cluster.SlotHash;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * The writer on a real Redis Cluster of three masters: batches over all slots, a slot that moves
 * and a master that restarts empty.
 */
@Timeout(120)
final class RedisClusterTest {

  private static final int[] FIRST_SLOTS = {0, 5_461, 10_923, SlotHash.SLOT_COUNT};

  private final List<TestRedis> servers = new ArrayList<>();
  private final List<Inspector> inspectors = new ArrayList<>();
  private String deployment;

  @BeforeEach
  void startCluster() throws Exception {
    for (int i = 0; i < 3; i++) {
      servers.add(
          TestRedis.start("--cluster-enabled", "yes", "--cluster-require-full-coverage", "no"));
      inspectors.add(servers.get(i).inspect());
    }
    for (int i = 0; i < 3; i++) {
      int[] slots = IntStream.range(FIRST_SLOTS[i], FIRST_SLOTS[i + 1]).toArray();
      inspectors.get(i).commands().clusterAddSlots(slots);
      inspectors.get(0).commands().clusterMeet("127.0.0.1", servers.get(i).port());
    }
    for (Inspector inspector : inspectors) {
      Await.until(
          "the cluster is whole",
          () ->
              inspector.commands().clusterInfo().contains("cluster_state:ok")
                  && inspector.commands().clusterSlots().size() == 3);
    }
    deployment = TestConfigs.deployment(servers.get(0).url(), true);
  }

  @AfterEach
  void stopCluster() throws Exception {
    inspectors.forEach(Inspector::close);
    for (TestRedis server : servers) {
      server.close();
    }
  }

  private static byte[] key(String key) {
    return StoreLayout.key("", TestConfigs.TABLE, key);
  }

  private int owner(String key) {
    int slot = SlotHash.getSlot(key(key));
    return slot < FIRST_SLOTS[1] ? 0 : slot < FIRST_SLOTS[2] ? 1 : 2;
  }

  private Version stored(int server, String key) {
    byte[] value = inspectors.get(server).commands().get(key(key));
    return value == null ? null : StoreLayout.decode(value).version();
  }

  @Test
  void splitsBatchesByHashSlot() throws Exception {
    try (WriterHarness writer = WriterHarness.open(deployment)) {
      for (int i = 0; i < 600; i++) {
        writer.write(upsert("k" + i, i + 1, i));
      }
      writer.awaitChanges(600);
      for (int i = 0; i < 600; i++) {
        assertThat(stored(owner("k" + i), "k" + i)).isEqualTo(new Version(i + 1, 1));
      }
      assertThat(writer.retries()).isZero();
    }
  }

  @Test
  void keepsSeveralVersionsOfKeysInEverySlot() throws Exception {
    String table = TestConfigs.table("\"keep_versions\": 1", "\"keep_versions\": 2");
    try (WriterHarness writer = WriterHarness.open(table, deployment, null, 1, 0)) {
      for (int round = 1; round <= 3; round++) {
        for (int i = 0; i < 100; i++) {
          writer.write(upsert("k" + i, round, i));
        }
      }
      writer.awaitChanges(300);
      for (int i = 0; i < 100; i++) {
        byte[] stored = inspectors.get(owner("k" + i)).commands().get(key("k" + i));
        assertThat(StoreLayout.decodeAll(stored))
            .extracting(StoredValue::version)
            .containsExactly(new Version(3, 1), new Version(2, 1));
      }
    }
  }

  @Test
  void followsASlotThatMoves() throws Exception {
    try (WriterHarness writer = WriterHarness.open(deployment)) {
      writer.write(upsert("k", 1, 1));
      writer.awaitChanges(1);
      int from = owner("k");
      int to = (from + 1) % 3;
      int slot = SlotHash.getSlot(key("k"));
      String source = inspectors.get(from).commands().clusterMyId();
      String target = inspectors.get(to).commands().clusterMyId();
      inspectors.get(to).commands().clusterSetSlotImporting(slot, source);
      inspectors.get(from).commands().clusterSetSlotMigrating(slot, target);
      inspectors
          .get(from)
          .commands()
          .migrate("127.0.0.1", servers.get(to).port(), key("k"), 0, 5_000);

      // The key is on its way: the old owner answers ASK.
      writer.write(upsert("k", 2, 2));
      writer.awaitChanges(2);
      assertThat(writer.retries()).isZero();

      for (Inspector inspector : inspectors) {
        inspector.commands().clusterSetSlotNode(slot, target);
      }
      // It has arrived: the old owner answers MOVED.
      writer.write(upsert("k", 3, 3));
      writer.awaitChanges(3);
      assertThat(writer.retries()).isPositive();
      assertThat(stored(to, "k")).isEqualTo(new Version(3, 1));
    }
  }

  @Test
  void restoresAMasterThatComesBackEmpty() throws Exception {
    try (WriterHarness writer = WriterHarness.open(deployment)) {
      for (int i = 0; i < 60; i++) {
        writer.write(upsert("k" + i, i + 1, i));
      }
      writer.awaitChanges(60);
      writer.changes().forEach(writer.log::append);
      inspectors.get(1).close();
      servers.get(1).kill();
      writer.flink.processWatermark(10);
      servers.get(1).restart();
      inspectors.set(1, servers.get(1).inspect());
      writer.await("the log was read", () -> writer.log.readings() == 1);
      writer.completeCheckpoints(2);
      writer.await("the restore ends", () -> writer.watermarks().contains(10L));

      for (FeatureChange change : writer.changes()) {
        assertThat(stored(owner(change.getKey()), change.getKey()))
            .isEqualTo(new Version(change.getVersionTimestamp(), 1));
      }
    }
  }

  @Test
  void anUnsetClusterFlagFailsWithTheFix() throws Exception {
    String standalone = TestConfigs.deployment(servers.get(0).url(), false);
    String elsewhere = owner("k") == 0 ? otherOwnersKey() : "k";
    // One key that another master holds (MOVED), and keys of many slots (CROSSSLOT).
    for (int keys : new int[] {1, 50}) {
      try (WriterHarness writer = WriterHarness.open(standalone)) {
        for (int i = 0; i < keys; i++) {
          writer.write(upsert(i == 0 ? elsewhere : "k" + i, i + 1, i));
        }
        assertThatThrownBy(() -> writer.awaitChanges(keys))
            .isInstanceOf(StoreException.class)
            .hasMessageContaining("set redis.cluster to true");
      }
    }
  }

  private String otherOwnersKey() {
    int i = 0;
    while (owner("other" + i) == 0) {
      i++;
    }
    return "other" + i;
  }
}
