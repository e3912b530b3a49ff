package dev.freshet.connectors.kafka;

import dev.freshet.schemas.DeadLetter;

/**
 * What became of one Kafka record: a value, a dead letter or a heartbeat.
 *
 * @param tag which of the three
 * @param value the value; null unless the tag is {@link Tag#VALUE}
 * @param deadLetter the dead letter; null unless the tag is {@link Tag#DEAD_LETTER}
 * @param timestampMs event time of a value or a heartbeat, epoch milliseconds; {@link
 *     #NO_TIMESTAMP} of a dead letter and of a value without one: they do not move the watermark
 */
public record Ingested<T>(Tag tag, T value, DeadLetter deadLetter, long timestampMs) {

  /** The three outcomes; the ordinal is the code on the wire. */
  public enum Tag {
    VALUE,
    DEAD_LETTER,
    HEARTBEAT
  }

  /** No event time. Flink's own mark of a record without a timestamp. */
  public static final long NO_TIMESTAMP = Long.MIN_VALUE;

  static <T> Ingested<T> value(T value, long timestampMs) {
    return new Ingested<>(Tag.VALUE, value, null, timestampMs);
  }

  static <T> Ingested<T> deadLetter(DeadLetter deadLetter) {
    return new Ingested<>(Tag.DEAD_LETTER, null, deadLetter, NO_TIMESTAMP);
  }

  static <T> Ingested<T> heartbeat(long timestampMs) {
    return new Ingested<>(Tag.HEARTBEAT, null, null, timestampMs);
  }
}
