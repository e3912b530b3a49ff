package dev.freshet.connectors.chunk;

import dev.freshet.schemas.Purpose;
import java.util.List;
import java.util.Map;

/**
 * What a chunk says of itself; immutable.
 *
 * @param id unique among the chunks of its sender
 * @param sender region that put the changes together; a relay that passes a chunk on leaves it
 * @param table feature table
 * @param log id of the changes topic that the offsets are of
 * @param purpose whether it is live, out of turn, or what a region has missed
 * @param plan number of the plan that the route is from
 * @param stripe index of the tree in the plan
 * @param route the region that the chunk is for, and where it sends it on to
 * @param clocksAhead how far the clocks of regions are ahead of home's, microseconds, as home
 *     estimates them; the chunk takes those of its route's regions along, as far as they are known
 * @param coverage what the region knows once its store has the changes; empty for an early chunk
 * @param sentAtMicros when home sent the newest of the changes, microseconds of home's clock
 * @param deadlineMs when the oldest is due at the destinations, epoch milliseconds of home's clock
 */
public record ChunkHeader(
    long id,
    String sender,
    String table,
    String log,
    Purpose purpose,
    long plan,
    int stripe,
    Route route,
    Map<String, Long> clocksAhead,
    List<Covered> coverage,
    long sentAtMicros,
    long deadlineMs) {

  public ChunkHeader {
    clocksAhead = Map.copyOf(clocksAhead);
    coverage = List.copyOf(coverage);
    if (purpose == Purpose.EARLY && !coverage.isEmpty()) {
      throw new IllegalArgumentException(
          "an early chunk covers nothing, and this one says "
              + coverage
              + "; its changes come again in their turn");
    }
  }

  /** How far the clock of the region that the chunk is for is ahead of home's; null if unknown. */
  public Long clockAheadMicros() {
    return clocksAhead.get(route.region());
  }
}
