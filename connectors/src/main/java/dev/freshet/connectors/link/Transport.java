package dev.freshet.connectors.link;

/**
 * Carries chunks to other regions' inboxes.
 *
 * <p>Delivery: a chunk that is acknowledged is on all replicas of the inbox. One that failed may
 * have arrived all the same; the receiver takes it twice. Chunks for the same region and lane
 * arrive in the order in which they were sent, but for those that are sent again after a failure.
 */
public interface Transport extends AutoCloseable {

  /** Hears once what became of a chunk; called on a thread of the transport. */
  @FunctionalInterface
  interface Callback {
    /**
     * @param failure null if the chunk is acknowledged
     */
    void done(Exception failure);
  }

  /**
   * Sends a chunk without blocking, also where the region cannot be reached. How much is under way
   * is the caller's to bound.
   *
   * @param region to send to, {@code provider:region}; one of the configuration
   * @param table names the record's key, together with the lane
   * @param lane picks the partition of the inbox: the lane modulo their number
   * @param chunk encoded
   */
  void send(String region, String table, int lane, byte[] chunk, Callback callback);

  @Override
  void close();
}
