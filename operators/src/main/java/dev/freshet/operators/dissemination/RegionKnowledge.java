package dev.freshet.operators.dissemination;

import dev.freshet.connectors.chunk.Covered;
import dev.freshet.connectors.chunk.OffsetRanges;
import dev.freshet.schemas.ShardKnowledge;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * What the region's store has (see {@code docs/multicast.md}), by the partition of the inbox that
 * it came in, so that it moves to other subtasks with them. What the region knows is the union.
 */
final class RegionKnowledge {

  /** One log, whose offsets are its own. */
  record Log(String table, String id) {}

  private final Map<Integer, Map<Log, Map<Integer, OffsetRanges>>> byPartition = new HashMap<>();

  /** The store has all that a chunk covers. */
  void add(int partition, Log log, List<Covered> coverage) {
    Map<Integer, OffsetRanges> shards =
        byPartition
            .computeIfAbsent(partition, key -> new HashMap<>())
            .computeIfAbsent(log, key -> new TreeMap<>());
    for (Covered range : coverage) {
      shards
          .computeIfAbsent(range.shard(), key -> new OffsetRanges())
          .add(range.after(), range.upto());
    }
  }

  /** The store has lost data. */
  void clear() {
    byPartition.clear();
  }

  /** What came in one partition, of each log. */
  Map<Log, List<Covered>> of(int partition) {
    Map<Log, List<Covered>> of = new HashMap<>();
    byPartition
        .getOrDefault(partition, Map.of())
        .forEach(
            (log, shards) -> {
              ChunkDraft all = ChunkDraft.unbounded();
              shards.forEach(all::cover);
              of.put(log, all.coverage());
            });
    return of;
  }

  /** All of a table, for a report. */
  List<ShardKnowledge> of(String table) {
    Map<Log, Map<Integer, OffsetRanges>> union = new HashMap<>();
    for (Map<Log, Map<Integer, OffsetRanges>> logs : byPartition.values()) {
      logs.forEach(
          (log, shards) -> {
            if (log.table().equals(table)) {
              Map<Integer, OffsetRanges> all = union.computeIfAbsent(log, key -> new TreeMap<>());
              shards.forEach(
                  (shard, ranges) ->
                      all.computeIfAbsent(shard, key -> new OffsetRanges()).addAll(ranges));
            }
          });
    }
    List<ShardKnowledge> of = new ArrayList<>();
    union.forEach(
        (log, shards) ->
            shards.forEach(
                (shard, ranges) -> of.add(new ShardKnowledge(log.id(), shard, ranges.toList()))));
    return of;
  }
}
