package dev.freshet.connectors.store;

import java.util.Set;

/** Hears of the store's servers coming and going; called on the client's threads. */
interface StoreListener {

  /**
   * Servers are connected. The first call names every master; a later one the server that came
   * (back). It returns before the first write to those servers is sent.
   *
   * @param servers {@link ServerIdentity} of each; a server that lost its data has a new one
   */
  void connected(Set<String> servers);

  /** A connection broke, so a server may be losing its data. */
  void disconnected();
}
