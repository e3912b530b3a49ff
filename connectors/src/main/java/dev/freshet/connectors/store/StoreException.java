package dev.freshet.connectors.store;

/** The online store cannot be used; the message says why and the fix. */
public final class StoreException extends RuntimeException {

  private static final long serialVersionUID = 1L;

  StoreException(String message, Throwable cause) {
    super(message, cause);
  }
}
