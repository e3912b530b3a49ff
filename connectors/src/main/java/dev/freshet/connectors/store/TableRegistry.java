package dev.freshet.connectors.store;

import static java.nio.charset.StandardCharsets.UTF_8;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The tables of a store, for its clients: a hash of table name to definition in JSON. */
final class TableRegistry {

  private static final Logger LOG = LoggerFactory.getLogger(TableRegistry.class);

  /** The hash, below the deployment's key prefix. */
  static final String KEY = "freshet:tables";

  private TableRegistry() {}

  /** Makes a table known, in one attempt that may fail. */
  static void enter(RedisStore store, String prefix, String table, String definition) {
    String registry = prefix + KEY;
    store
        .setField(registry.getBytes(UTF_8), table.getBytes(UTF_8), definition.getBytes(UTF_8))
        .whenComplete(
            (done, failure) -> {
              if (failure != null) {
                LOG.warn("Cannot enter table {} into {}", table, registry, failure);
              }
            });
  }
}
