package dev.freshet.connectors.kafka;

import dev.freshet.connectors.format.TableConfig;
import dev.freshet.connectors.record.DeadLetters;
import dev.freshet.connectors.record.RecordTypeInfo;
import dev.freshet.schemas.DeadLetter;
import dev.freshet.schemas.Stage;
import java.io.Serializable;
import java.nio.ByteBuffer;
import java.util.function.LongSupplier;
import org.apache.flink.api.common.serialization.DeserializationSchema;
import org.apache.flink.api.common.serialization.SerializerConfigImpl;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.connector.kafka.source.reader.deserializer.KafkaRecordDeserializationSchema;
import org.apache.flink.util.Collector;
import org.apache.kafka.clients.consumer.ConsumerRecord;

/**
 * Turns every Kafka record into exactly one {@link Ingested}. It never throws for a record's
 * content: what cannot be used becomes a dead letter that says what is wrong, where, and the fix.
 */
final class IngestSchema<T> implements KafkaRecordDeserializationSchema<Ingested<T>> {

  private static final long serialVersionUID = 1L;

  /** Header of a heartbeat: no key, no value, the record's timestamp is event time. */
  static final String HEARTBEAT_HEADER = "freshet-heartbeat";

  /** Makes the parser where it runs: a parser is not serializable. */
  @FunctionalInterface
  interface ParserFactory<T> extends Serializable {
    RecordParser<T> create(TableConfig config, LongSupplier wallClockMs);
  }

  private final TableConfig config;
  private final ParserFactory<T> parsers;
  private final RecordTypeInfo<T> valueType;
  private transient RecordParser<T> parser;
  private transient FieldRules rules;

  IngestSchema(TableConfig config, ParserFactory<T> parsers, RecordTypeInfo<T> valueType) {
    this.config = config;
    this.parsers = parsers;
    this.valueType = valueType;
  }

  @Override
  public void open(DeserializationSchema.InitializationContext context) {
    open(System::currentTimeMillis);
  }

  void open(LongSupplier wallClockMs) {
    parser = parsers.create(config, wallClockMs);
    rules = new FieldRules(config.maxFutureMs(), wallClockMs);
  }

  @Override
  public void deserialize(ConsumerRecord<byte[], byte[]> record, Collector<Ingested<T>> out) {
    out.collect(ingest(record));
  }

  Ingested<T> ingest(ConsumerRecord<byte[], byte[]> record) {
    try {
      byte[] value = record.value();
      if (value == null) {
        return heartbeat(record);
      }
      if (value.length > parser.maxBytes()) {
        throw new BadRecordException(
            "the value has "
                + value.length
                + " bytes, more than source.max_event_bytes, "
                + parser.maxBytes()
                + "; send smaller events or raise it");
      }
      T parsed = parser.parse(value);
      return Ingested.value(parsed, parser.timestampMs(parsed));
    } catch (BadRecordException e) {
      return Ingested.deadLetter(deadLetter(record, e.getMessage(), e.timestampMs()));
    } catch (RuntimeException e) {
      // A parser's fault must not stop the job either; the class tells where to look.
      return Ingested.deadLetter(
          deadLetter(record, "the value cannot be parsed: " + e, Ingested.NO_TIMESTAMP));
    }
  }

  private Ingested<T> heartbeat(ConsumerRecord<byte[], byte[]> record) throws BadRecordException {
    if (record.headers().lastHeader(HEARTBEAT_HEADER) == null) {
      throw new BadRecordException(
          "the record has no value; send a JSON object, or a heartbeat with the header '"
              + HEARTBEAT_HEADER
              + "'");
    }
    return Ingested.heartbeat(
        rules.checkTimestamp("the heartbeat's timestamp", record.timestamp()));
  }

  private DeadLetter deadLetter(
      ConsumerRecord<byte[], byte[]> record, String reason, long timestampMs) {
    String subject = parser.stage() == Stage.EVENT ? "event" : "feedback";
    return DeadLetters.fit(
        DeadLetter.newBuilder()
            .setTable(config.table())
            .setStage(parser.stage())
            .setReason(
                subject
                    + " at topic "
                    + record.topic()
                    + ", partition "
                    + record.partition()
                    + ", offset "
                    + record.offset()
                    + ": "
                    + reason)
            .setTopic(record.topic())
            .setPartition(record.partition())
            .setOffset(record.offset())
            .setKey(record.key() == null ? null : ByteBuffer.wrap(record.key()))
            .setValue(record.value() == null ? null : ByteBuffer.wrap(record.value()))
            .setEventTime(timestampMs == Ingested.NO_TIMESTAMP ? -1 : timestampMs)
            .build());
  }

  @Override
  public TypeInformation<Ingested<T>> getProducedType() {
    return producedType(valueType);
  }

  @SuppressWarnings("unchecked")
  static <T> RecordTypeInfo<Ingested<T>> producedType(RecordTypeInfo<T> valueType) {
    Class<Ingested<T>> type = (Class<Ingested<T>>) (Class<?>) Ingested.class;
    return new RecordTypeInfo<>(
        type, new IngestedSerializer<>(valueType.createSerializer(new SerializerConfigImpl())));
  }
}
