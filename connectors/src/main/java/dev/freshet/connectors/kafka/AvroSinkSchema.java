package dev.freshet.connectors.kafka;

import dev.freshet.connectors.format.SingleObjectCodec;
import java.io.Serializable;
import org.apache.avro.specific.SpecificRecordBase;
import org.apache.flink.api.common.serialization.SerializationSchema;
import org.apache.flink.connector.kafka.sink.KafkaRecordSerializationSchema;
import org.apache.flink.util.function.SerializableFunction;
import org.apache.kafka.clients.producer.ProducerRecord;

/** Turns an Avro record into a Kafka record: a key, and the value in single-object encoding. */
final class AvroSinkSchema<T extends SpecificRecordBase>
    implements KafkaRecordSerializationSchema<T>, Serializable {

  private static final long serialVersionUID = 1L;

  private final String topic;
  private final Class<T> type;
  private final SerializableFunction<T, byte[]> key;
  private final SerializableFunction<T, T> fit;
  private transient SingleObjectCodec<T> codec;

  /**
   * @param key gives a record's Kafka key; null for none
   * @param fit brings a record within the size that the topic takes
   */
  AvroSinkSchema(
      String topic,
      Class<T> type,
      SerializableFunction<T, byte[]> key,
      SerializableFunction<T, T> fit) {
    this.topic = topic;
    this.type = type;
    this.key = key;
    this.fit = fit;
  }

  @Override
  public void open(
      SerializationSchema.InitializationContext context, KafkaSinkContext sinkContext) {
    codec = SingleObjectCodec.of(type);
  }

  @Override
  public ProducerRecord<byte[], byte[]> serialize(
      T record, KafkaSinkContext context, Long timestamp) {
    // The record's timestamp is left to the producer: Kafka's retention deletes by it, and event
    // time may lie years back in a replay.
    T fitting = fit.apply(record);
    return new ProducerRecord<>(topic, key.apply(fitting), codec.encode(fitting));
  }
}
