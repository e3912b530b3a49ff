package dev.freshet.connectors.store;

import dev.freshet.connectors.record.Version;
import dev.freshet.schemas.ValueEncoding;

/**
 * One value of the online store, as {@link StoreLayout} packs it.
 *
 * @param version version of the value
 * @param eventTimeMs event time of the newest event in the value, epoch milliseconds
 * @param computedAtMs when it was computed, epoch milliseconds
 * @param tombstone whether the key is deleted
 * @param encoding how the value is packed
 * @param value the packed value
 */
public record StoredValue(
    Version version,
    long eventTimeMs,
    long computedAtMs,
    boolean tombstone,
    ValueEncoding encoding,
    byte[] value) {}
