package dev.freshet.connectors.store;

import static java.nio.charset.StandardCharsets.US_ASCII;

import dev.freshet.connectors.chunk.KeyChange;
import dev.freshet.connectors.format.DeploymentConfig;
import dev.freshet.schemas.FeatureChange;
import dev.freshet.schemas.Operation;

/**
 * One conditional write.
 *
 * @param key Redis key
 * @param value header and packed value
 * @param expiryMs after which the key goes, milliseconds; 0 for never
 */
record StoreWrite(byte[] key, byte[] value, long expiryMs) {

  private static final byte[] NO_EXPIRY = {'0'};

  /** The write of a change: a delete leaves a tombstone that expires. */
  static StoreWrite of(FeatureChange change, DeploymentConfig.Redis redis) {
    return new StoreWrite(
        StoreLayout.key(redis.prefix(), change.getTable(), change.getKey()),
        StoreLayout.encode(change),
        change.getOperation() == Operation.DELETE ? redis.tombstoneRetentionMs() : 0);
  }

  /**
   * The same for a change from another region.
   *
   * @param table that it is of
   */
  static StoreWrite of(String table, KeyChange change, DeploymentConfig.Redis redis) {
    return new StoreWrite(
        StoreLayout.key(redis.prefix(), table, change.key()),
        StoreLayout.encode(change),
        change.isDelete() ? redis.tombstoneRetentionMs() : 0);
  }

  /** The expiry as the script takes it: decimal digits. */
  byte[] expiryArgument() {
    return expiryMs == 0 ? NO_EXPIRY : Long.toString(expiryMs).getBytes(US_ASCII);
  }

  int bytes() {
    return key.length + value.length;
  }
}
