package dev.freshet.connectors.store;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;

/**
 * Which servers the store consists of, as a subtask knows them, and whether what they lost is still
 * to be restored. It is operator state, so that a loss during a failover of the job is noticed,
 * too.
 */
final class StoreIdentity {

  private static final String PENDING = "restore-pending";
  private static final String COMPLETE = "complete";
  private static final char SEPARATOR = ' ';

  /** Every server ever seen: 40 characters for each of its restarts. */
  private final Set<String> servers = new TreeSet<>();

  private boolean restorePending;

  /**
   * Joins what all subtasks knew. Where they knew different servers, some had noticed a loss and
   * some had not, so a restore is pending.
   */
  static StoreIdentity join(Iterable<String> states) {
    StoreIdentity joined = new StoreIdentity();
    for (String state : states) {
      List<String> words = new ArrayList<>(List.of(state.split(String.valueOf(SEPARATOR))));
      joined.restorePending |= words.remove(0).equals(PENDING);
      Set<String> theirs = new TreeSet<>(words);
      if (theirs.isEmpty()) {
        continue;
      }
      joined.restorePending |= !joined.servers.isEmpty() && !joined.servers.equals(theirs);
      joined.servers.addAll(theirs);
    }
    return joined;
  }

  /** The form that {@link #join} reads. */
  String toState() {
    StringBuilder state = new StringBuilder(restorePending ? PENDING : COMPLETE);
    servers.forEach(server -> state.append(SEPARATOR).append(server));
    return state.toString();
  }

  /**
   * Servers are connected.
   *
   * @return whether one of them is new to a store that was known, so that data may be lost
   */
  boolean connected(Set<String> connected) {
    boolean firstContact = servers.isEmpty();
    boolean unknown = servers.addAll(connected);
    if (unknown && !firstContact) {
      restorePending = true;
      return true;
    }
    return false;
  }

  /** What was lost is back. */
  void restored() {
    restorePending = false;
  }

  boolean isRestorePending() {
    return restorePending;
  }
}
