package dev.freshet.connectors.kafka;

import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.connector.kafka.source.reader.deserializer.KafkaRecordDeserializationSchema;
import org.apache.flink.util.Collector;
import org.apache.kafka.clients.consumer.ConsumerRecord;

/** Turns every Kafka record into a {@link LogRecord}, whatever is in it. */
final class LogSchema implements KafkaRecordDeserializationSchema<LogRecord> {

  private static final long serialVersionUID = 1L;
  private static final byte[] NOTHING = {};

  @Override
  public void deserialize(ConsumerRecord<byte[], byte[]> record, Collector<LogRecord> out) {
    byte[] value = record.value() == null ? NOTHING : record.value();
    out.collect(new LogRecord(record.partition(), record.offset(), value));
  }

  @Override
  public TypeInformation<LogRecord> getProducedType() {
    return LogRecord.TYPE;
  }
}
