package dev.freshet.operators.dissemination;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * All shards of all tables of a job: in streams by number, in state by a name that stays when
 * tables come or go.
 */
final class Shards implements Serializable {

  private static final long serialVersionUID = 1L;

  /**
   * One shard.
   *
   * @param table that it is of
   * @param partition of the table's changes topic
   * @param key of its state
   */
  record Shard(String table, int partition, String key) implements Serializable {
    private static final long serialVersionUID = 1L;
  }

  private final ArrayList<Shard> all = new ArrayList<>();
  private final HashMap<String, Integer> firstOfTable = new HashMap<>();

  Shards(List<MulticastSettings.Table> tables) {
    for (MulticastSettings.Table table : tables) {
      firstOfTable.put(table.table(), all.size());
      for (int partition = 0; partition < table.shards(); partition++) {
        all.add(new Shard(table.table(), partition, table.table() + "/" + partition));
      }
    }
  }

  /** Number of a table's first shard; the others follow. */
  int first(String table) {
    return firstOfTable.get(table);
  }

  Shard get(int number) {
    return all.get(number);
  }

  List<Shard> all() {
    return all;
  }

  /** By the key of their state. */
  Map<String, Shard> byKey() {
    Map<String, Shard> byKey = new HashMap<>();
    all.forEach(shard -> byKey.put(shard.key(), shard));
    return byKey;
  }
}
