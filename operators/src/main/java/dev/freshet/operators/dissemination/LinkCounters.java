package dev.freshet.operators.dissemination;

import dev.freshet.schemas.LinkReport;
import dev.freshet.schemas.Purpose;

/** What a link has delivered since the job's first start; bytes. */
final class LinkCounters {

  private long chunks;
  private long rawBytes;
  private long wireBytes;
  private long catchUpBytes;

  void count(SentChunk chunk) {
    chunks++;
    rawBytes += chunk.rawBytes();
    wireBytes += chunk.wireBytes();
    if (chunk.purpose() == Purpose.CATCH_UP) {
      catchUpBytes += chunk.wireBytes();
    }
  }

  /** Goes on from what an earlier run has counted. */
  void restore(LinkReport counted) {
    chunks += counted.getChunks();
    rawBytes += counted.getRawBytes();
    wireBytes += counted.getWireBytes();
    catchUpBytes += counted.getCatchUpBytes();
  }

  long chunks() {
    return chunks;
  }

  long rawBytes() {
    return rawBytes;
  }

  long wireBytes() {
    return wireBytes;
  }

  long catchUpBytes() {
    return catchUpBytes;
  }
}
