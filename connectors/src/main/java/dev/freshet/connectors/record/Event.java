package dev.freshet.connectors.record;

/**
 * One raw event of a key. Two events with the same key, timestamp and id are the same event; the
 * later arrival replaces the earlier.
 *
 * @param key entity key
 * @param timestampMs event time, epoch milliseconds
 * @param id tells apart events of a key in one millisecond: a hash of the table's id field, or 0
 *     where it maps none
 * @param kind how value is encoded
 * @param value the encoded value
 */
public record Event(String key, long timestampMs, long id, ValueKind kind, byte[] value) {}
