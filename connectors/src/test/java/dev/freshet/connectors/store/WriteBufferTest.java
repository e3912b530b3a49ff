package dev.freshet.connectors.store;

import static dev.freshet.connectors.testing.Changes.upsert;
import static org.assertj.core.api.Assertions.assertThat;

import dev.freshet.connectors.format.DeploymentConfig;
import dev.freshet.connectors.testing.TestConfigs;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import net.jqwik.api.Example;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;
import net.jqwik.api.lifecycle.BeforeTry;

/** Batches are cut by number and size, and writes of one key go one after the other. */
final class WriteBufferTest {

  private static final DeploymentConfig.Redis REDIS =
      DeploymentConfig.parse(TestConfigs.deployment("redis://127.0.0.1:1", false)).redis();

  private final WatermarkHold hold = new WatermarkHold();
  private WriteBuffer<PendingChange> buffer;

  @BeforeTry
  void begin() {
    buffer = new WriteBuffer<>();
  }

  private void add(String key, long version, int valueBytes) {
    var change = upsert(key, version, 0);
    change.setValue(ByteBuffer.allocate(valueBytes));
    buffer.add(new PendingChange(change, StoreWrite.of(change, REDIS), hold.accept()));
  }

  private static List<String> keys(WriteBatch<PendingChange> batch) {
    return batch.writes().stream().map(write -> write.change().getKey()).toList();
  }

  @Example
  void aBatchHasSoManyWritesAndNoMore() {
    for (int i = 0; i < WriteBuffer.BATCH_WRITES_MAX + 1; i++) {
      assertThat(buffer.isFull()).isEqualTo(i >= WriteBuffer.BATCH_WRITES_MAX);
      add("k" + i, 1, 4);
    }
    assertThat(keys(buffer.next())).hasSize(WriteBuffer.BATCH_WRITES_MAX);
    assertThat(buffer.isFull()).isFalse();
    assertThat(keys(buffer.next())).containsExactly("k" + WriteBuffer.BATCH_WRITES_MAX);
    assertThat(buffer.isEmpty()).isTrue();
  }

  @Example
  void aBatchHasSoManyBytesOrOneWrite() {
    int half = (int) WriteBuffer.BATCH_BYTES_MAX / 2;
    for (int i = 0; i < 4; i++) {
      add("half " + i, 1, half);
    }
    add("more", 1, 2 * half);
    add("last", 1, 4);
    assertThat(buffer.isFull()).isTrue();
    assertThat(keys(buffer.next())).containsExactly("half 0", "half 1");
    assertThat(keys(buffer.next())).containsExactly("half 2", "half 3");
    assertThat(keys(buffer.next())).containsExactly("more");
    assertThat(buffer.isFull()).isFalse();
    assertThat(keys(buffer.next())).containsExactly("last");
  }

  @Example
  void aWriteWaitsForTheOneBeforeItOfItsKey() {
    add("a", 1, 4);
    add("a", 2, 4);
    add("b", 1, 4);
    WriteBatch<PendingChange> first = buffer.next();
    assertThat(keys(first)).containsExactly("a", "b");
    assertThat(keys(buffer.next())).isEmpty();
    assertThat(buffer.isEmpty()).isFalse();
    buffer.answered(first.writes().get(1));
    assertThat(keys(buffer.next())).isEmpty();
    buffer.answered(first.writes().get(0));
    assertThat(keys(buffer.next())).containsExactly("a");
    assertThat(buffer.isEmpty()).isTrue();
  }

  @Example
  void whatIsUnderWayCountsUntilItIsAnswered() {
    int half = (int) WriteBuffer.BATCH_BYTES_MAX / 2;
    add("a", 1, half);
    add("b", 1, half);
    WriteBatch<PendingChange> batch = buffer.next();
    add("c", 1, half);
    add("d", 1, half);
    assertThat(buffer.holds(2)).isTrue();
    buffer.answered(batch.writes().get(0));
    assertThat(buffer.holds(2)).isFalse();
    for (int i = 0; i < 2 * WriteBuffer.BATCH_WRITES_MAX - 3; i++) {
      assertThat(buffer.holds(2)).isFalse();
      add("k" + i, 1, 4);
    }
    assertThat(buffer.holds(2)).isTrue();
  }

  @Property(tries = 200)
  void everyWriteGoesOnceAndThoseOfAKeyInTheirOrder(
      @ForAll @IntRange(min = 1, max = 20) int keys, @ForAll long seed) {
    Random random = new Random(seed);
    Map<String, Long> sent = new HashMap<>();
    List<PendingChange> underWay = new ArrayList<>();
    int added = 0;
    for (int round = 0; added < 200 || !buffer.isEmpty() || !underWay.isEmpty(); round++) {
      assertThat(round).as("it comes to an end").isLessThan(20_000);
      if (added < 200) {
        add("k" + random.nextInt(keys), ++added, 4);
      }
      if (random.nextBoolean()) {
        for (PendingChange write : buffer.next().writes()) {
          String key = write.change().getKey();
          assertThat(underWay).extracting(other -> other.change().getKey()).doesNotContain(key);
          long version = write.change().getVersionTimestamp();
          assertThat(version).isGreaterThan(sent.getOrDefault(key, 0L));
          sent.put(key, version);
          underWay.add(write);
        }
      }
      if (!underWay.isEmpty() && random.nextBoolean()) {
        buffer.answered(underWay.remove(random.nextInt(underWay.size())));
      }
    }
    assertThat(sent.values().stream().mapToLong(version -> version).max()).hasValue(added);
  }

  @Example
  void whatIsMergedGoesOnceInItsTurn() {
    buffer =
        new WriteBuffer<>(
            (waiting, next) ->
                next.change().getVersionTimestamp() > waiting.change().getVersionTimestamp()
                    ? next
                    : waiting);
    add("a", 1, 4);
    WriteBatch<PendingChange> first = buffer.next();
    add("a", 2, 4);
    add("b", 1, 4);
    add("a", 4, 40);
    add("a", 3, 4);
    assertThat(buffer.size()).isEqualTo(3);
    assertThat(keys(buffer.next())).containsExactly("b");
    buffer.answered(first.writes().get(0));
    WriteBatch<PendingChange> second = buffer.next();
    assertThat(second.writes()).hasSize(1);
    assertThat(second.writes().get(0).change().getVersionTimestamp()).isEqualTo(4);
    assertThat(buffer.isEmpty()).isTrue();
    buffer.answered(second.writes().get(0));
    assertThat(buffer.size()).isEqualTo(1); // "b" is under way
  }
}
