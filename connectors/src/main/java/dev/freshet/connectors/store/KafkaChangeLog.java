package dev.freshet.connectors.store;

import dev.freshet.connectors.format.DeploymentConfig;
import dev.freshet.connectors.format.SingleObjectCodec;
import dev.freshet.connectors.format.TableConfig;
import dev.freshet.schemas.FeatureChange;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The changes topic, read by one subtask: each partition belongs to the subtask whose index is the
 * partition's number modulo the parallelism. It commits no offsets and joins no group.
 */
final class KafkaChangeLog implements ChangeLog {

  private static final Logger LOG = LoggerFactory.getLogger(KafkaChangeLog.class);
  private static final Duration POLL = Duration.ofMillis(200);

  private final String topic;
  private final int subtask;
  private final int parallelism;
  private final Properties properties;
  private final SingleObjectCodec<FeatureChange> codec = SingleObjectCodec.of(FeatureChange.class);

  /** Offset to read next. */
  private final Map<TopicPartition, Long> positions = new HashMap<>();

  KafkaChangeLog(TableConfig table, DeploymentConfig deployment, int subtask, int parallelism) {
    this.topic = table.changesTopic();
    this.subtask = subtask;
    this.parallelism = parallelism;
    this.properties = deployment.kafkaProperties();
    properties.remove(ConsumerConfig.GROUP_ID_CONFIG);
    properties.setProperty(
        ConsumerConfig.CLIENT_ID_CONFIG, deployment.group() + "-restore-" + subtask);
    properties.setProperty(ConsumerConfig.ENABLE_AUTO_COMMIT_CONFIG, "false");
    properties.setProperty(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");
    properties.setProperty(ConsumerConfig.ALLOW_AUTO_CREATE_TOPICS_CONFIG, "false");
  }

  @Override
  public void readToEnd(Sink sink) throws InterruptedException {
    try (KafkaConsumer<byte[], byte[]> consumer =
        new KafkaConsumer<>(properties, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
      List<TopicPartition> partitions = ownPartitions(consumer);
      consumer.assign(partitions);
      Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
      Map<TopicPartition, Long> beginnings = consumer.beginningOffsets(partitions);
      for (TopicPartition partition : partitions) {
        consumer.seek(
            partition, Math.max(positions.getOrDefault(partition, 0L), beginnings.get(partition)));
      }
      while (!reached(consumer, ends)) {
        ConsumerRecords<byte[], byte[]> records = consumer.poll(POLL);
        sink.accept(decode(records));
        for (TopicPartition partition : partitions) {
          positions.put(partition, consumer.position(partition));
        }
      }
    }
  }

  private static boolean reached(
      KafkaConsumer<byte[], byte[]> consumer, Map<TopicPartition, Long> ends) {
    // Compaction leaves gaps, so the position tells, not the last record.
    return ends.entrySet().stream()
        .allMatch(end -> consumer.position(end.getKey()) >= end.getValue());
  }

  private List<TopicPartition> ownPartitions(KafkaConsumer<byte[], byte[]> consumer) {
    List<PartitionInfo> all = consumer.partitionsFor(topic);
    if (all == null || all.isEmpty()) {
      LOG.warn("Topic {} does not exist, so nothing can be restored from it", topic);
      return List.of();
    }
    return all.stream()
        .map(PartitionInfo::partition)
        .filter(partition -> partition % parallelism == subtask)
        .map(partition -> new TopicPartition(topic, partition))
        .toList();
  }

  private List<FeatureChange> decode(ConsumerRecords<byte[], byte[]> records) {
    List<FeatureChange> changes = new ArrayList<>(records.count());
    for (ConsumerRecord<byte[], byte[]> record : records) {
      if (record.value() == null) {
        continue;
      }
      try {
        changes.add(codec.decode(record.value()));
      } catch (IOException e) {
        LOG.warn(
            "Topic {}, partition {}, offset {} cannot be restored: {}",
            topic,
            record.partition(),
            record.offset(),
            e.getMessage());
      }
    }
    return changes;
  }

  @Override
  public void close() {
    // Each reading has a consumer of its own: months may lie between two losses.
  }
}
