package dev.freshet.connectors.kafka;

import dev.freshet.connectors.record.RecordTypeInfo;

/**
 * A record of a topic that is read as it is, with its place in the topic.
 *
 * @param partition of the topic
 * @param offset in the partition
 * @param value the record's value; empty if it had none (a tombstone of a compacted topic), so that
 *     its offset is seen all the same
 */
public record LogRecord(int partition, long offset, byte[] value) {

  /** For streams of them. */
  public static final RecordTypeInfo<LogRecord> TYPE =
      new RecordTypeInfo<>(LogRecord.class, new LogRecordSerializer());

  /** Whether the record had no value. */
  public boolean isTombstone() {
    return value.length == 0;
  }
}
