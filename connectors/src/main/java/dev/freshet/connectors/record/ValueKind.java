package dev.freshet.connectors.record;

/** How the value of an {@link Event} is encoded; one table has one kind. */
public enum ValueKind {
  /** One float64, little-endian. */
  SCALAR,
  /** A vector of float64, little-endian; every event of a table has the same length. */
  VECTOR,
  /** A JSON object, UTF-8. */
  JSON;

  private static final ValueKind[] KINDS = values();

  /** The kind with this ordinal, which is its code on the wire. */
  public static ValueKind of(int code) {
    return KINDS[code];
  }
}
