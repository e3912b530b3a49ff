package dev.freshet.connectors.chunk;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** The wire form of a route: record Hop in Chunk.avsc, with the clock of each region beside it. */
final class RouteCodec {

  /** Longest path; far above that of any tree, and far below what the stack bears. */
  static final int DEPTH_MAX = 64;

  /** An empty name, a boolean, a union's branch and an array's end. */
  private static final int HOP_BYTES_MIN = 4;

  private static final int CLOCK_UNKNOWN = 0;
  private static final int CLOCK_KNOWN = 1;

  private RouteCodec() {}

  /**
   * Writes a route.
   *
   * @throws IllegalArgumentException if it is no tree of regions
   */
  static void write(Route route, Map<String, Long> clocksAhead, AvroOutput out) {
    write(route, clocksAhead, out, new HashSet<>(), 1);
  }

  private static void write(
      Route hop, Map<String, Long> clocksAhead, AvroOutput out, Set<String> seen, int depth) {
    String problem = problem(hop.region(), seen, depth);
    if (problem != null) {
      throw new IllegalArgumentException("the route " + problem + "; make it a tree of regions");
    }
    out.writeString(hop.region());
    out.writeBoolean(hop.applies());
    Long clockAhead = clocksAhead.get(hop.region());
    out.writeInt(clockAhead == null ? CLOCK_UNKNOWN : CLOCK_KNOWN);
    if (clockAhead != null) {
      out.writeLong(clockAhead);
    }
    if (!hop.children().isEmpty()) {
      out.writeInt(hop.children().size());
      for (Route child : hop.children()) {
        write(child, clocksAhead, out, seen, depth + 1);
      }
    }
    out.writeInt(0);
  }

  /** Reads a route, and puts the clocks that are known into the map. */
  static Route read(AvroInput in, Map<String, Long> clocksAhead) throws BadBytesException {
    return read(in, clocksAhead, new HashSet<>(), 1);
  }

  private static Route read(
      AvroInput in, Map<String, Long> clocksAhead, Set<String> seen, int depth)
      throws BadBytesException {
    String region = in.readString();
    String problem = problem(region, seen, depth);
    if (problem != null) {
      throw new BadBytesException("the route " + problem);
    }
    boolean applies = in.readBoolean();
    if (in.readIndex(CLOCK_KNOWN + 1) == CLOCK_KNOWN) {
      clocksAhead.put(region, in.readLong());
    }
    List<Route> children = new ArrayList<>();
    for (int left = in.readBlock(HOP_BYTES_MIN); left > 0; left = in.readBlock(HOP_BYTES_MIN)) {
      for (; left > 0; left--) {
        children.add(read(in, clocksAhead, seen, depth + 1));
      }
    }
    return new Route(region, applies, children);
  }

  private static String problem(String region, Set<String> seen, int depth) {
    if (depth > DEPTH_MAX) {
      return "is deeper than " + DEPTH_MAX + " hops";
    }
    return seen.add(region) ? null : "has the region '" + region + "' twice";
  }
}
