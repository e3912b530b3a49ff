package dev.freshet.operators.scheduling;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import dev.freshet.connectors.record.Event;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Random;
import java.util.stream.LongStream;
import net.jqwik.api.Example;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;
import org.apache.flink.api.common.state.ListState;

/** The raw window in list state against a map of all events that ever came. */
class KeyWindowsProperties {

  private record Id(long timestamp, long id) {}

  /** List state of one key, as the backends give it: null when empty. */
  private static final class Stored implements ListState<byte[]> {
    private List<byte[]> entries = new ArrayList<>();
    private int reads;

    @Override
    public Iterable<byte[]> get() {
      reads++;
      return entries.isEmpty() ? null : entries;
    }

    @Override
    public void add(byte[] entry) {
      entries.add(entry);
    }

    @Override
    public void update(List<byte[]> values) {
      entries = values;
    }

    @Override
    public void addAll(List<byte[]> values) {
      entries.addAll(values);
    }

    @Override
    public void clear() {
      entries = new ArrayList<>();
    }
  }

  @Property(tries = 100)
  void pointsWindowLosesNothing(
      @ForAll @IntRange(min = 1, max = 40) int points,
      @ForAll @IntRange(min = 1, max = 12) int disorder,
      @ForAll long seed)
      throws Exception {
    check(WindowExtent.ofPoints(points), disorder, new Random(seed));
  }

  @Property(tries = 100)
  void durationWindowLosesNothing(
      @ForAll @IntRange(min = 1, max = 60) int durationMs,
      @ForAll @IntRange(min = 1, max = 12) int disorder,
      @ForAll long seed)
      throws Exception {
    check(WindowExtent.ofDuration(durationMs), disorder, new Random(seed));
  }

  /**
   * Events come out of order, twice, with ids within one millisecond, with corrected values; the
   * floor follows behind. Every window as of the floor or later must equal the one made of all
   * accepted events (checked now and then), and what is refused must be older than all of them.
   */
  private static void check(WindowExtent extent, int disorder, Random random) throws Exception {
    Stored state = new Stored();
    KeyWindows windows = new KeyWindows(state, extent);
    KeyRecord record = new KeyRecord();
    Map<Id, Double> all = new HashMap<>();
    long floor = KeyRecord.NO_TIME;
    long front = 1_000;
    for (int i = 0; i < 200; i++) {
      front += random.nextInt(3);
      long timestamp = random.nextInt(3) == 0 ? front - random.nextInt(disorder) : front;
      Id id = new Id(timestamp, random.nextInt(3));
      double value = random.nextInt(2);
      KeyWindows.Arrival arrival =
          windows.add(record, MaintenanceHarness.scalar("k", timestamp, id.id(), value), floor);
      Double before = all.put(id, value);
      switch (arrival) {
        case DUPLICATE -> assertThat(before).isEqualTo((Double) value);
        case TOO_LATE -> {
          assertThat(timestamp).isLessThanOrEqualTo(record.trimmedThrough);
          if (before == null) {
            all.remove(id);
          } else {
            all.put(id, before);
          }
        }
        case PENDING -> assertThat(Objects.equals(before, value)).isFalse();
      }
      if (random.nextInt(10) == 0) {
        floor = Math.max(floor, front - disorder + random.nextInt(disorder));
        windows.trim(record, windows.read(), floor);
      }
      assertThat(record.entries).isEqualTo(state.entries.size());
      if (i % 5 != 0) {
        continue;
      }
      long from = floor == KeyRecord.NO_TIME ? front : floor;
      for (long asOf = from; asOf <= front + 1; asOf++) {
        assertThat(actual(windows, asOf)).isEqualTo(expected(all, extent, asOf));
      }
    }
  }

  private static List<String> actual(KeyWindows windows, long asOf) throws Exception {
    return windows.asOf(windows.read(), asOf).stream()
        .map(
            entry ->
                RawWindow.timestamp(entry)
                    + " "
                    + entry[8]
                    + " "
                    + ByteBuffer.wrap(entry)
                        .order(ByteOrder.LITTLE_ENDIAN)
                        .getDouble(RawWindow.VALUE_OFFSET))
        .toList();
  }

  private static List<String> expected(Map<Id, Double> all, WindowExtent extent, long asOf) {
    List<Id> known =
        all.keySet().stream()
            .filter(id -> id.timestamp() <= asOf)
            .sorted(Comparator.comparingLong(Id::timestamp).thenComparingLong(Id::id))
            .toList();
    if (known.isEmpty()) {
      return List.of();
    }
    long newest = known.get(known.size() - 1).timestamp();
    return known.stream()
        .skip(extent.points() > 0 ? Math.max(0, known.size() - extent.points()) : 0)
        .filter(id -> extent.points() > 0 || id.timestamp() > newest - extent.durationMs())
        .map(id -> id.timestamp() + " " + id.id() + " " + all.get(id))
        .toList();
  }

  @Example
  void eventInOrderReadsNothing() throws Exception {
    Stored state = new Stored();
    KeyWindows windows = new KeyWindows(state, WindowExtent.ofPoints(100));
    KeyRecord record = new KeyRecord();
    for (int i = 0; i < 64; i++) {
      windows.add(record, event(i), i);
    }
    assertThat(state.reads).isZero();
  }

  @Example
  void keyThatIsNeverComputedStaysBoundedAndIsSeldomRead() throws Exception {
    Stored state = new Stored();
    KeyWindows windows = new KeyWindows(state, WindowExtent.ofPoints(100));
    KeyRecord record = new KeyRecord();
    for (int i = 0; i < 100_000; i++) {
      windows.add(record, event(i), i);
      assertThat(state.entries.size()).isLessThanOrEqualTo(201);
    }
    assertThat(state.reads).isLessThan(1_100);
  }

  @Example
  void eventsOfTheTrimmedMillisecondAreStillTaken() throws Exception {
    Stored state = new Stored();
    KeyWindows windows = new KeyWindows(state, WindowExtent.ofPoints(2));
    KeyRecord record = new KeyRecord();
    for (long id : LongStream.range(0, 3).toArray()) {
      windows.add(record, MaintenanceHarness.scalar("k", 5, id, (double) id), 5);
    }
    windows.trim(record, windows.read(), 5);
    assertThat(windows.add(record, MaintenanceHarness.scalar("k", 5, 3, 3), 5))
        .isEqualTo(KeyWindows.Arrival.PENDING);
    assertThat(actual(windows, 5)).containsExactly("5 2 2.0", "5 3 3.0");
  }

  @Example
  void windowIsPointsOrDuration() {
    assertThatIllegalArgumentException().isThrownBy(() -> new WindowExtent(0, 0));
    assertThatIllegalArgumentException().isThrownBy(() -> new WindowExtent(5, 5));
    assertThatIllegalArgumentException().isThrownBy(() -> WindowExtent.ofPoints(-1));
  }

  private static Event event(long timestampMs) {
    return MaintenanceHarness.scalar("k", timestampMs, 0, (double) timestampMs);
  }
}
