package dev.freshet.operators.scheduling;

import java.io.Serializable;
import java.util.Set;

/** Decides which key is recomputed next, by scoring each key from its record alone. */
public interface SchedulingPolicy extends Serializable {

  /** What a choice of a key takes out of its pending events. */
  enum Consumption {
    /** All of them: the value is computed on all data up to now. */
    ALL_PENDING,
    /**
     * The oldest: the value is computed as of that event, as a stream processor without us does.
     */
    OLDEST_PENDING
  }

  /** What a policy works with beside events; without it, its order means little. */
  enum Need {
    /** Feedback with errors. */
    LABELS,
    /** Feedback, with errors or without. */
    QUERIES,
    /** Measured time of computations, which makes choices depend on the machine. */
    COSTS,
    /** A table with {@code keep_versions} of 2 or more, and feedback on all of them. */
    KEPT_VERSIONS
  }

  /** Name in table definitions and reports, in kebab case. */
  String name();

  /**
   * Priority of a key with pending data; larger is recomputed earlier, and of equals the one that
   * was chosen longest ago, then the first by name. It may depend on nothing but the record, and
   * must be a number.
   */
  double priority(KeyRecord record);

  /** What it works with. */
  default Set<Need> needs() {
    return Set.of();
  }

  /** What a choice consumes. */
  default Consumption consumption() {
    return Consumption.ALL_PENDING;
  }
}
