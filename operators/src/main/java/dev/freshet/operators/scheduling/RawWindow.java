package dev.freshet.operators.scheduling;

import dev.freshet.connectors.record.Event;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;

/**
 * The raw window of one key as read from its list state: encoded events in order of (event time,
 * id). An entry is 8 bytes of event time, 8 bytes of id, then the value.
 */
final class RawWindow {

  private static final VarHandle LONG =
      MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);
  private static final int ID_OFFSET = 8;
  static final int VALUE_OFFSET = 16;

  private static final Comparator<byte[]> ORDER =
      Comparator.<byte[]>comparingLong(RawWindow::timestamp).thenComparingLong(RawWindow::id);

  private final List<byte[]> entries;

  private RawWindow(List<byte[]> entries) {
    this.entries = entries;
  }

  /** Reads a list state's content; usually it is in order already. */
  static RawWindow of(Iterable<byte[]> stored) {
    List<byte[]> entries = new ArrayList<>();
    boolean sorted = true;
    byte[] previous = null;
    if (stored != null) {
      for (byte[] entry : stored) {
        sorted &= previous == null || ORDER.compare(previous, entry) <= 0;
        entries.add(entry);
        previous = entry;
      }
    }
    if (!sorted) {
      entries.sort(ORDER);
    }
    return new RawWindow(entries);
  }

  static byte[] encode(Event event) {
    byte[] entry = new byte[VALUE_OFFSET + event.value().length];
    LONG.set(entry, 0, event.timestampMs());
    LONG.set(entry, ID_OFFSET, event.id());
    System.arraycopy(event.value(), 0, entry, VALUE_OFFSET, event.value().length);
    return entry;
  }

  static long timestamp(byte[] entry) {
    return (long) LONG.get(entry, 0);
  }

  private static long id(byte[] entry) {
    return (long) LONG.get(entry, ID_OFFSET);
  }

  /** What became of an event that did not simply go to the end. */
  enum Insertion {
    INSERTED,
    REPLACED,
    DUPLICATE
  }

  /** Puts an entry in its place; the same event with another value replaces it. */
  Insertion insert(byte[] entry) {
    int low = 0;
    int high = entries.size();
    while (low < high) {
      int middle = (low + high) >>> 1;
      if (ORDER.compare(entries.get(middle), entry) < 0) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    if (low < entries.size() && ORDER.compare(entries.get(low), entry) == 0) {
      if (Arrays.equals(entries.get(low), entry)) {
        return Insertion.DUPLICATE;
      }
      entries.set(low, entry);
      return Insertion.REPLACED;
    }
    entries.add(low, entry);
    return Insertion.INSERTED;
  }

  List<byte[]> entries() {
    return entries;
  }

  int size() {
    return entries.size();
  }

  /** Number of entries at or before this time. */
  int countThrough(long time) {
    int low = 0;
    int high = entries.size();
    while (low < high) {
      int middle = (low + high) >>> 1;
      if (timestamp(entries.get(middle)) <= time) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }
}
