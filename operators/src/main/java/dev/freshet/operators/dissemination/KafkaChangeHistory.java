package dev.freshet.operators.dissemination;

import dev.freshet.connectors.chunk.BadChangeException;
import dev.freshet.connectors.chunk.ChangeReader;
import dev.freshet.connectors.chunk.ChunkEntry;
import dev.freshet.connectors.chunk.OffsetRanges;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import org.apache.flink.util.concurrent.ExecutorThreadFactory;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The changes topics, read again on a thread of their own; it joins no group. */
final class KafkaChangeHistory implements ChangeHistory {

  private static final Logger LOG = LoggerFactory.getLogger(KafkaChangeHistory.class);

  private static final Duration POLL = Duration.ofMillis(200);

  private final Properties properties;
  private final ExecutorService thread =
      Executors.newSingleThreadExecutor(new ExecutorThreadFactory("freshet-change-history"));

  KafkaChangeHistory(Properties kafka, String clientId) {
    this.properties = new Properties();
    properties.putAll(kafka);
    properties.remove(ConsumerConfig.GROUP_ID_CONFIG);
    properties.setProperty(ConsumerConfig.CLIENT_ID_CONFIG, clientId);
    properties.setProperty(ConsumerConfig.ENABLE_AUTO_COMMIT_CONFIG, "false");
    properties.setProperty(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");
    properties.setProperty(ConsumerConfig.ALLOW_AUTO_CREATE_TOPICS_CONFIG, "false");
  }

  private KafkaConsumer<byte[], byte[]> consumer() {
    return new KafkaConsumer<>(
        properties, new ByteArrayDeserializer(), new ByteArrayDeserializer());
  }

  @Override
  public Map<Integer, Long> ends(MulticastSettings.Table table) {
    try (KafkaConsumer<byte[], byte[]> consumer = consumer()) {
      List<TopicPartition> partitions = new ArrayList<>();
      for (int shard = 0; shard < table.shards(); shard++) {
        partitions.add(new TopicPartition(table.topic(), shard));
      }
      Map<Integer, Long> ends = new LinkedHashMap<>();
      consumer
          .endOffsets(partitions)
          .forEach((partition, end) -> ends.put(partition.partition(), end));
      return ends;
    }
  }

  @Override
  public void read(MulticastSettings.Table table, int shard, OffsetRanges ranges, Reader reader) {
    OffsetRanges wanted = ranges.copy();
    try {
      thread.execute(
          () -> {
            Exception failure = null;
            try {
              readAll(table, shard, wanted, reader);
            } catch (Exception e) {
              failure = e;
            }
            reader.done(failure);
          });
    } catch (RejectedExecutionException e) {
      LOG.debug("Closed before shard {} of {} could be read", shard, table.topic(), e);
    }
  }

  private void readAll(
      MulticastSettings.Table table, int shard, OffsetRanges ranges, Reader reader) {
    // A key that changed again was moved to the end, so the order is that of offsets.
    ChangeBatches.forEach(shard, newest(table, shard, ranges).values(), ranges, reader::read);
  }

  /** The newest change in the ranges of each key, by offset. */
  private Map<String, ChunkEntry> newest(
      MulticastSettings.Table table, int shard, OffsetRanges ranges) {
    Map<String, ChunkEntry> newest = new LinkedHashMap<>();
    ChangeReader changes = new ChangeReader(table.table());
    TopicPartition partition = new TopicPartition(table.topic(), shard);
    long last = ranges.upto(ranges.count() - 1);
    try (KafkaConsumer<byte[], byte[]> consumer = consumer()) {
      consumer.assign(List.of(partition));
      long end = Math.min(last + 1, consumer.endOffsets(List.of(partition)).get(partition));
      long beginning = consumer.beginningOffsets(List.of(partition)).get(partition);
      consumer.seek(partition, Math.max(beginning, ranges.after(0) + 1));
      while (consumer.position(partition) < end) {
        for (ConsumerRecord<byte[], byte[]> record : consumer.poll(POLL)) {
          if (record.value() != null && ranges.contains(record.offset() - 1, record.offset())) {
            add(newest, changes, shard, record);
          }
        }
      }
    }
    return newest;
  }

  private static void add(
      Map<String, ChunkEntry> newest,
      ChangeReader changes,
      int shard,
      ConsumerRecord<byte[], byte[]> record) {
    try {
      ChunkEntry entry = new ChunkEntry(shard, record.offset(), changes.read(record.value()));
      newest.remove(entry.change().key());
      newest.put(entry.change().key(), entry);
    } catch (BadChangeException e) {
      // It was a dead letter when it was read live.
      LOG.debug("Offset {} of shard {} holds no change", record.offset(), shard, e);
    }
  }

  @Override
  public void close() {
    thread.shutdownNow();
  }
}
