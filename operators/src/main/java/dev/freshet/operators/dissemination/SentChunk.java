package dev.freshet.operators.dissemination;

import dev.freshet.connectors.chunk.ChunkEntry;
import dev.freshet.connectors.chunk.Covered;
import dev.freshet.schemas.Purpose;
import java.util.List;

/**
 * A chunk that is on its way to the next hop.
 *
 * @param lane that it is from
 * @param purpose as in the chunk
 * @param entries in it, for the case that it fails
 * @param coverage of it
 * @param dueMs when its oldest change is due
 * @param rawBytes before compression
 * @param wireBytes as sent
 * @param sentNanos when it was sent
 */
record SentChunk(
    LaneId lane,
    Purpose purpose,
    List<ChunkEntry> entries,
    List<Covered> coverage,
    long dueMs,
    long rawBytes,
    long wireBytes,
    long sentNanos) {}
