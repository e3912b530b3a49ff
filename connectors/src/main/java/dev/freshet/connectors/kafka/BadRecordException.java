package dev.freshet.connectors.kafka;

/** A record that cannot be used. Its message says which field, what is wrong, and the fix. */
final class BadRecordException extends Exception {

  private static final long serialVersionUID = 1L;

  /** Event time, if it was read before the fault; {@link Ingested#NO_TIMESTAMP} otherwise. */
  private final long timestampMs;

  BadRecordException(String message) {
    this(message, Ingested.NO_TIMESTAMP);
  }

  BadRecordException(String message, long timestampMs) {
    // A bad record is data, not a fault of the program: a stack trace would only cost time.
    super(message, null, false, false);
    this.timestampMs = timestampMs;
  }

  long timestampMs() {
    return timestampMs;
  }
}
