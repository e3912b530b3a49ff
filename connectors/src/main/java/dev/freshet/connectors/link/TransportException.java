package dev.freshet.connectors.link;

/**
 * A chunk did not get to its region, or it is not known whether it did; the message says which
 * region, why, and the fix.
 */
public final class TransportException extends Exception {

  private static final long serialVersionUID = 1L;

  private final boolean permanent;

  TransportException(String message, boolean permanent, Throwable cause) {
    // A region that is cut off fails many chunks; the cause's stack says where.
    super(message, cause, false, false);
    this.permanent = permanent;
  }

  /**
   * Whether it stays so until somebody does what the message says. The chunk, or a newer one, may
   * be sent again all the same: that is how the fix is noticed.
   */
  public boolean permanent() {
    return permanent;
  }
}
