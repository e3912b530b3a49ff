package dev.freshet.operators.scheduling;

import dev.freshet.connectors.record.Event;
import java.util.ArrayList;
import java.util.List;
import org.apache.flink.api.common.state.ListState;

/**
 * The raw window of the current key, in list state: appended to for each event, read and trimmed
 * when the key is computed.
 *
 * <p>An event in order is an append, which reads nothing. One out of order reads the list to find
 * its place, because it may be a duplicate. A key that is never computed is trimmed each time its
 * list has doubled, so that trimming stays cheap in the mean.
 */
final class KeyWindows {

  /** Lists shorter than this are not worth trimming. */
  private static final int TRIM_MIN_ENTRIES = 64;

  /** What became of an event. */
  enum Arrival {
    /** It is in the window now, and the current value does not contain it. */
    PENDING,
    /** It was in the window, with the same value. */
    DUPLICATE,
    /** It is older than everything that the window keeps. */
    TOO_LATE
  }

  private final ListState<byte[]> state;
  private final WindowExtent extent;

  KeyWindows(ListState<byte[]> state, WindowExtent extent) {
    this.state = state;
    this.extent = extent;
  }

  /**
   * Takes in an event of the current key.
   *
   * @param floor the windows that will be read are as of this time or later
   */
  Arrival add(KeyRecord record, Event event, long floor) throws Exception {
    byte[] entry = RawWindow.encode(event);
    if (event.timestampMs() > record.newest) {
      state.add(entry);
      record.entries++;
      record.newest = event.timestampMs();
      trimIfDoubled(record, floor);
      return Arrival.PENDING;
    }
    if (event.timestampMs() <= record.trimmedThrough) {
      return Arrival.TOO_LATE;
    }
    RawWindow window = RawWindow.of(state.get());
    if (window.insert(entry) == RawWindow.Insertion.DUPLICATE) {
      return Arrival.DUPLICATE;
    }
    store(record, window.entries());
    return Arrival.PENDING;
  }

  /** Reads the current key's list. */
  RawWindow read() throws Exception {
    return RawWindow.of(state.get());
  }

  /** The window as of a time, in order of event time; a view into the list that was read. */
  List<byte[]> asOf(RawWindow window, long asOf) {
    int through = window.countThrough(asOf);
    return window.entries().subList(extent.firstIndex(window, through), through);
  }

  /** Drops what no window as of the floor or later can hold, when it is worth a write. */
  void trim(KeyRecord record, RawWindow window, long floor) throws Exception {
    int first = extent.firstIndex(window, window.countThrough(floor));
    if (first > 0) {
      // Events of one millisecond stay together, so that the mark below tells exactly what is gone.
      first = window.countThrough(RawWindow.timestamp(window.entries().get(first)) - 1);
    }
    int kept = window.size() - first;
    record.trimAt = Math.max(TRIM_MIN_ENTRIES, 2 * kept);
    if (first > kept / 4) {
      record.trimmedThrough = RawWindow.timestamp(window.entries().get(first - 1));
      store(record, window.entries().subList(first, window.size()));
    }
  }

  private void trimIfDoubled(KeyRecord record, long floor) throws Exception {
    if (floor != KeyRecord.NO_TIME && record.entries > Math.max(TRIM_MIN_ENTRIES, record.trimAt)) {
      trim(record, read(), floor);
    }
  }

  private void store(KeyRecord record, List<byte[]> entries) throws Exception {
    // A copy: the heap backend keeps the list that it is given.
    state.update(new ArrayList<>(entries));
    record.entries = entries.size();
  }
}
