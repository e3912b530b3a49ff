package dev.freshet.connectors.secret;

/** A reference leads to no secret; the message says why and the fix, never what is there. */
public final class SecretException extends RuntimeException {

  private static final long serialVersionUID = 1L;

  SecretException(String message) {
    super(message);
  }
}
