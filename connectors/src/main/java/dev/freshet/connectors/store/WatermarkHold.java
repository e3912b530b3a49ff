package dev.freshet.connectors.store;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.function.Consumer;
import org.apache.flink.streaming.api.watermark.Watermark;
import org.apache.flink.streaming.runtime.watermarkstatus.WatermarkStatus;

/**
 * Holds each watermark back until every write that came before it is settled.
 *
 * <p>The input is a row of segments: some writes, then a watermark or a status that ends them. The
 * last segment is open. When there are many, each without writes left is merged into the one before
 * it, whose later watermark then says all that both did; so there are never many more segments than
 * unsettled writes, however long the store is away.
 *
 * <p>Worked timeline: write a, watermark 10, write b, watermark 20. b is settled: nothing may go. a
 * is settled: 10 goes, then 20.
 */
final class WatermarkHold {

  /** Writes between two watermarks, and what ends them. */
  static final class Segment {
    private int unsettled;
    private Watermark watermark;
    private WatermarkStatus status;

    private Segment() {}
  }

  /** Enough that merging is rare, few enough that it is quick. */
  private static final int MERGE_ABOVE = 64;

  private final Deque<Segment> segments = new ArrayDeque<>();

  WatermarkHold() {
    segments.add(new Segment());
  }

  /** Counts a write in; the segment is to be given back to {@link #settle}. */
  Segment accept() {
    Segment open = segments.getLast();
    open.unsettled++;
    return open;
  }

  /** The write is in the store, or has gone elsewhere for good. */
  static void settle(Segment segment) {
    if (segment.unsettled <= 0) {
      throw new IllegalStateException("a write was settled twice");
    }
    segment.unsettled--;
  }

  /** A watermark came. */
  void hold(Watermark watermark) {
    segments.getLast().watermark = watermark;
    close();
  }

  /** A watermark status came. */
  void hold(WatermarkStatus status) {
    segments.getLast().status = status;
    close();
  }

  private void close() {
    segments.add(new Segment());
    if (segments.size() > MERGE_ABOVE) {
      mergeSettled();
    }
  }

  /** Releases what may go, in order. */
  void release(Consumer<Watermark> onWatermark, Consumer<WatermarkStatus> onStatus) {
    while (segments.size() > 1 && segments.getFirst().unsettled == 0) {
      Segment released = segments.removeFirst();
      if (released.watermark != null) {
        onWatermark.accept(released.watermark);
      }
      if (released.status != null) {
        onStatus.accept(released.status);
      }
    }
  }

  /** Merges each closed segment without unsettled writes into the one before it. */
  private void mergeSettled() {
    Segment open = segments.removeLast();
    Deque<Segment> kept = new ArrayDeque<>(segments.size() + 1);
    for (Segment segment : segments) {
      if (kept.isEmpty() || segment.unsettled > 0) {
        kept.add(segment);
        continue;
      }
      Segment before = kept.getLast();
      before.watermark = segment.watermark == null ? before.watermark : segment.watermark;
      before.status = segment.status == null ? before.status : segment.status;
    }
    segments.clear();
    segments.addAll(kept);
    segments.add(open);
  }

  /** Segments held, the open one included. */
  int size() {
    return segments.size();
  }
}
