package dev.freshet.connectors.store;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.lettuce.core.cluster.SlotHash;
import java.util.Arrays;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;

/** Which master holds each hash slot of a Redis Cluster. */
final class SlotTable {

  private final String[] masters;

  private SlotTable(String[] masters) {
    this.masters = masters;
  }

  /**
   * Reads the answer to {@code CLUSTER SLOTS}: entries of first slot, last slot, master (host,
   * port, …), replicas.
   *
   * @param askedHost the host that was asked, which a server that does not know its own address
   *     means
   */
  static SlotTable parse(List<Object> answer, String askedHost) {
    String[] masters = new String[SlotHash.SLOT_COUNT];
    for (Object entry : answer) {
      List<?> range = (List<?>) entry;
      List<?> master = (List<?>) range.get(2);
      String host = master.get(0) == null ? "" : new String((byte[]) master.get(0), UTF_8);
      if (host.isEmpty() || host.equals("?")) {
        host = askedHost;
      }
      int first = ((Long) range.get(0)).intValue();
      int last = ((Long) range.get(1)).intValue();
      Arrays.fill(masters, first, last + 1, host + ":" + master.get(1));
    }
    return new SlotTable(masters);
  }

  /** {@code host:port} of the slot's master; null if no server holds the slot. */
  String master(int slot) {
    return masters[slot];
  }

  /** Every master. */
  Set<String> masters() {
    Set<String> all = new LinkedHashSet<>(Arrays.asList(masters));
    all.remove(null);
    return all;
  }
}
