package dev.freshet.connectors.chunk;

/** A chunk that cannot be used. Its message says what is wrong; catch-up sends it again. */
public final class DamagedChunkException extends Exception {

  private static final long serialVersionUID = 1L;

  DamagedChunkException(String message) {
    // A damaged chunk is data, not a fault of the program: a stack trace would only cost time.
    super(message, null, false, false);
  }
}
