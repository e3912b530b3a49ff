package dev.freshet.connectors.chunk;

/** Bytes that are not what their schema says. The message says what is wrong and where. */
final class BadBytesException extends Exception {

  private static final long serialVersionUID = 1L;

  BadBytesException(String message) {
    // Bad bytes are data, not a fault of the program: a stack trace would only cost time.
    super(message, null, false, false);
  }
}
