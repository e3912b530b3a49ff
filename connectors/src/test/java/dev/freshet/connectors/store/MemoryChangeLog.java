package dev.freshet.connectors.store;

import dev.freshet.schemas.FeatureChange;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;

/** A log of changes that a test appends to. */
final class MemoryChangeLog implements ChangeLog {

  private final List<FeatureChange> changes = new CopyOnWriteArrayList<>();
  private final AtomicInteger readings = new AtomicInteger();
  private volatile int failuresLeft;
  private int position;

  void append(FeatureChange change) {
    changes.add(change);
  }

  /** Readings that came to the end. */
  int readings() {
    return readings.get();
  }

  /** Makes the next readings fail halfway. */
  void failNext(int times) {
    failuresLeft = times;
  }

  @Override
  public void readToEnd(Sink sink) throws Exception {
    int end = changes.size();
    if (failuresLeft > 0) {
      failuresLeft--;
      int half = position + (end - position) / 2;
      sink.accept(new ArrayList<>(changes.subList(position, half)));
      position = half;
      throw new java.io.IOException("the log is away");
    }
    sink.accept(new ArrayList<>(changes.subList(position, end)));
    position = end;
    readings.incrementAndGet();
  }

  @Override
  public void close() {}
}
