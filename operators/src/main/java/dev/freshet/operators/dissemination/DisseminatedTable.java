package dev.freshet.operators.dissemination;

import dev.freshet.connectors.chunk.ChangeReader;
import dev.freshet.connectors.chunk.KeyChange;
import dev.freshet.connectors.chunk.Route;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;

/** A table that is disseminated: its plan, and how far each shard of this subtask has been read. */
final class DisseminatedTable {

  /**
   * Where the changes of a shard go.
   *
   * @param link to the next hop
   * @param lane on it
   */
  record Target(Link link, Lane lane) {}

  private record Part(int stripe, Set<String> destinations) {}

  private final MulticastSettings.Table settings;
  private final ChangeReader reader;
  private final Priorities priorities;
  private final long cacheBytes;
  private final Map<Integer, Shard> shards = new TreeMap<>();
  private final Map<Integer, List<Route>> routes = new HashMap<>();
  private final Map<Part, List<Route>> parts = new HashMap<>();
  private MulticastPlan plan;
  private int[] stripes = {};
  private long changes;
  private long changeBytes;

  DisseminatedTable(MulticastSettings.Table settings, PriorityQuantile quantile, long cacheBytes) {
    this.settings = settings;
    this.reader = new ChangeReader(settings.table());
    this.priorities = new Priorities(quantile, settings.weight());
    this.cacheBytes = cacheBytes;
  }

  MulticastSettings.Table settings() {
    return settings;
  }

  /** Reads its changes. */
  ChangeReader reader() {
    return reader;
  }

  Priorities priorities() {
    return priorities;
  }

  Collection<Shard> shards() {
    return shards.values();
  }

  /** A shard of this subtask; null if it has none of this number. */
  Shard known(int number) {
    return shards.get(number);
  }

  Shard shard(int number) {
    Shard shard = shards.get(number);
    if (shard == null) {
      shard = new Shard(number, cacheBytes);
      shards.put(number, shard);
    }
    return shard;
  }

  void count(KeyChange change) {
    changes++;
    changeBytes += change.key().length() + change.value().length + BacklogEntry.OVERHEAD_BYTES;
    priorities.observe(change);
  }

  /** Goes on from what an earlier run has counted. */
  void restoreCounters(long changesBefore, long changeBytesBefore) {
    changes += changesBefore;
    changeBytes += changeBytesBefore;
  }

  long changes() {
    return changes;
  }

  long changeBytes() {
    return changeBytes;
  }

  // The plan.

  /** Number of the plan in force; 0 before the first. */
  long planNumber() {
    return plan == null ? 0 : plan.number();
  }

  void plan(MulticastPlan next) {
    Map<Integer, List<Route>> all = new HashMap<>();
    for (int stripe = 0; stripe < next.stripes().size(); stripe++) {
      all.put(stripe, next.routes(stripe));
    }
    routes.clear();
    parts.clear();
    routes.putAll(all);
    stripes = next.stripesOfShards(settings.shards());
    plan = next;
  }

  int stripe(int shard) {
    return stripes[shard];
  }

  /** The ways of a shard's changes, one for each next hop. */
  List<Route> routes(int shard) {
    return plan == null ? List.of() : routes.get(stripes[shard]);
  }

  /** The parts of these ways that lead to some destinations. */
  List<Route> routesTo(int shard, Set<String> destinations) {
    if (plan == null) {
      return List.of();
    }
    return parts.computeIfAbsent(
        new Part(stripes[shard], destinations),
        part -> {
          List<Route> found = new ArrayList<>();
          routes
              .get(part.stripe())
              .forEach(route -> route.towards(part.destinations()).ifPresent(found::add));
          return found;
        });
  }

  /** Whether the plan brings changes to a region. */
  boolean reaches(String region) {
    return plan != null
        && (plan.destinations().contains(region) || plan.detached().contains(region));
  }

  /** One shard. */
  static final class Shard {
    private final int number;
    private final long cacheBytes;
    private RecentChanges recent;
    private Target[] targets = {};
    private long head = -1;
    private boolean isRead;

    Shard(int number, long cacheBytes) {
      this.number = number;
      this.cacheBytes = cacheBytes;
      assume(-1);
    }

    int number() {
      return number;
    }

    /** Whether a record of it was read, by this run or an earlier one. */
    boolean isRead() {
      return isRead;
    }

    /** Offset of the last record that was read, or that there was before the first. */
    long head() {
      return head;
    }

    /** An earlier run has read up to here, and this one goes on behind. */
    void restore(long offset) {
      assume(offset);
      isRead = true;
    }

    /** The log ends here now; where reading begins is not known before the first record. */
    void assume(long offset) {
      head = offset;
      recent = new RecentChanges(number, offset, cacheBytes);
    }

    /**
     * A record was read.
     *
     * @return the offset behind which it is the first
     */
    long advance(long offset) {
      if (!isRead) {
        // What stands before it was not read: regions that lack it catch up.
        restore(offset - 1);
      }
      long after = Math.min(head, offset - 1);
      head = Math.max(head, offset);
      return after;
    }

    RecentChanges recent() {
      return recent;
    }

    Target[] targets() {
      return targets;
    }

    void target(List<Target> all) {
      targets = all.toArray(new Target[0]);
    }
  }
}
