package dev.freshet.connectors.store;

import java.util.List;

/** Writes that travel together, until all of them are answered. */
final class WriteBatch<W extends PendingWrite> {

  /** What is not answered yet. */
  private List<W> writes;

  private long sentNanos;
  private int failures;

  WriteBatch(List<W> writes) {
    this.writes = writes;
  }

  List<W> writes() {
    return writes;
  }

  List<StoreWrite> sent(long nowNanos) {
    sentNanos = nowNanos;
    return writes.stream().map(PendingWrite::write).toList();
  }

  long sentNanos() {
    return sentNanos;
  }

  /** An attempt left these writes without an answer. Gives the attempts failed in a row. */
  int failed(List<W> unanswered) {
    failures = unanswered.size() < writes.size() ? 1 : failures + 1;
    writes = unanswered;
    return failures;
  }
}
