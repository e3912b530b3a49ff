package dev.freshet.connectors.kafka;

import dev.freshet.schemas.Stage;

/** Parses the value of one Kafka record. Not thread-safe. */
interface RecordParser<T> {

  /**
   * Parses one record.
   *
   * @throws BadRecordException if it cannot be used
   */
  T parse(byte[] json) throws BadRecordException;

  /** Event time of a parsed record, epoch milliseconds, or {@link Ingested#NO_TIMESTAMP}. */
  long timestampMs(T record);

  /** Where a record that this parser rejects failed. */
  Stage stage();

  /** Longest record value that is read, bytes. */
  int maxBytes();
}
