package dev.freshet.operators.dissemination;

import dev.freshet.schemas.Purpose;
import java.util.List;

/** How what waits for a link stands in a checkpoint: as chunks of limited size. */
final class StateChunks {

  private static final int ENTRIES_MAX = 10_000;
  private static final int BYTES_MAX = 8 << 20;

  private StateChunks() {}

  /** What of a lane is not acknowledged, encoded. */
  static List<byte[]> of(LaneId lane, ChunkDraft all, Link.Encoder encoder) {
    Purpose purpose = lane.isCatchUp() ? Purpose.CATCH_UP : Purpose.LIVE;
    return all.split(ENTRIES_MAX, BYTES_MAX).stream()
        .map(part -> encoder.encode(lane, purpose, part).bytes())
        .toList();
  }
}
