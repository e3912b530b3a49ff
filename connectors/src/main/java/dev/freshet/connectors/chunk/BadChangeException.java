package dev.freshet.connectors.chunk;

/** A record of a changes topic that cannot be used. Its message says why. */
public final class BadChangeException extends Exception {

  private static final long serialVersionUID = 1L;

  BadChangeException(String message) {
    // A bad record is data, not a fault of the program: a stack trace would only cost time.
    super(message, null, false, false);
  }
}
