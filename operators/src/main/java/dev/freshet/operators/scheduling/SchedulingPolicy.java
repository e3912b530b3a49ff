package dev.freshet.operators.scheduling;

import java.io.Serializable;

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

  /** Name in table definitions and reports, in kebab case. */
  String name();

  /**
   * Priority of a key with pending data; larger is recomputed earlier. It may depend on nothing but
   * the record, and must be a number.
   */
  double priority(KeyRecord record);

  /** What a choice consumes. */
  default Consumption consumption() {
    return Consumption.ALL_PENDING;
  }
}
