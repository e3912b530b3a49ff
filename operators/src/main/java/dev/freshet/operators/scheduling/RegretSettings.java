package dev.freshet.operators.scheduling;

import java.io.Serializable;

/**
 * How regret that nobody has measured is set, for all policies that score by regret.
 *
 * @param perPending regret of one pending event, in units of the error; greater than 0, so that no
 *     key starves
 * @param max cap of a key's regret, in units of the error
 * @param missing regret of having no value, in units of the error, to which what is fed back on the
 *     missing value is added; null for the cap, so that a first value comes before any update
 */
public record RegretSettings(double perPending, double max, Double missing)
    implements Serializable {

  /** The cap for keys without a value. */
  public RegretSettings(double perPending, double max) {
    this(perPending, max, null);
  }

  /**
   * A key's regret before the cap: the errors fed back on its current version, plus the default for
   * each pending event and for having no value.
   */
  double regret(KeyRecord record) {
    return record.regret() + perPending * record.pending() + ofMissing(record);
  }

  /** Whether the record's key has no value and comes before all that have one. */
  boolean comesFirst(KeyRecord record) {
    return missing == null && !record.hasValue();
  }

  /** What is added to a key's regret for having no value; 0 for a key with one. */
  double ofMissing(KeyRecord record) {
    return missing == null || record.hasValue() ? 0 : missing;
  }
}
