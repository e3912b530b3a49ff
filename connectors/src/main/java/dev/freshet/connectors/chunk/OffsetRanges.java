package dev.freshet.connectors.chunk;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * A set of offsets of one shard's log, as disjoint ranges in ascending order, none touching the
 * next. Adding at the end, which is the usual case, takes constant time.
 */
public final class OffsetRanges {

  private static final int INITIAL = 4;

  /** Pairs of the offset before a range and its last one. */
  private long[] bounds = new long[INITIAL];

  private int length;

  /** The set with this one range. */
  public static OffsetRanges of(long after, long upto) {
    OffsetRanges ranges = new OffsetRanges();
    ranges.add(after, upto);
    return ranges;
  }

  /**
   * From what {@link #toList} gave.
   *
   * @throws IllegalArgumentException if the list's length is odd
   */
  public static OffsetRanges fromList(List<Long> bounds) {
    if (bounds.size() % 2 != 0) {
      throw new IllegalArgumentException(
          "ranges of offsets are pairs, but " + bounds.size() + " offsets were given");
    }
    OffsetRanges ranges = new OffsetRanges();
    for (int i = 0; i < bounds.size(); i += 2) {
      ranges.add(bounds.get(i), bounds.get(i + 1));
    }
    return ranges;
  }

  /** A copy. */
  public OffsetRanges copy() {
    OffsetRanges copy = new OffsetRanges();
    copy.bounds = Arrays.copyOf(bounds, bounds.length);
    copy.length = length;
    return copy;
  }

  public boolean isEmpty() {
    return length == 0;
  }

  /** Number of ranges. */
  public int count() {
    return length / 2;
  }

  /** The offset before the range of this index. */
  public long after(int index) {
    return bounds[2 * index];
  }

  /** The last offset of the range of this index. */
  public long upto(int index) {
    return bounds[2 * index + 1];
  }

  /** The last offset of the range that starts at the log's beginning; -1 if there is none. */
  public long prefix() {
    return length > 0 && bounds[0] == -1 ? bounds[1] : -1;
  }

  /** Whether every offset of a range is in the set. */
  public boolean contains(long after, long upto) {
    for (int i = 0; i < length; i += 2) {
      if (bounds[i] <= after && upto <= bounds[i + 1]) {
        return true;
      }
    }
    return upto <= after;
  }

  /** Adds the offsets behind one, up to another; none if that is not larger. */
  public void add(long after, long upto) {
    if (upto <= after) {
      return;
    }
    if (length > 0 && after == bounds[length - 1]) {
      bounds[length - 1] = upto;
    } else if (length == 0 || after > bounds[length - 1]) {
      append(after, upto);
    } else {
      insert(after, upto);
    }
  }

  /** Adds all of another set. */
  public void addAll(OffsetRanges other) {
    for (int i = 0; i < other.length; i += 2) {
      add(other.bounds[i], other.bounds[i + 1]);
    }
  }

  private void append(long after, long upto) {
    if (length == bounds.length) {
      bounds = Arrays.copyOf(bounds, 2 * length);
    }
    bounds[length++] = after;
    bounds[length++] = upto;
  }

  private void insert(long after, long upto) {
    long[] old = Arrays.copyOf(bounds, length);
    length = 0;
    long from = after;
    long to = upto;
    int i = 0;
    for (; i < old.length && old[i + 1] < from; i += 2) {
      append(old[i], old[i + 1]);
    }
    for (; i < old.length && old[i] <= to; i += 2) {
      from = Math.min(from, old[i]);
      to = Math.max(to, old[i + 1]);
    }
    append(from, to);
    for (; i < old.length; i += 2) {
      append(old[i], old[i + 1]);
    }
  }

  /** Takes the offsets of a range out. */
  public void remove(long after, long upto) {
    if (upto <= after || length == 0 || after >= bounds[length - 1]) {
      return;
    }
    long[] old = Arrays.copyOf(bounds, length);
    length = 0;
    for (int i = 0; i < old.length; i += 2) {
      long left = Math.min(old[i + 1], after);
      if (left > old[i]) {
        append(old[i], left);
      }
      long right = Math.max(old[i], upto);
      if (right < old[i + 1]) {
        append(right, old[i + 1]);
      }
    }
  }

  /** Takes out all of another set. */
  public void removeAll(OffsetRanges other) {
    for (int i = 0; i < other.length; i += 2) {
      remove(other.bounds[i], other.bounds[i + 1]);
    }
  }

  /** The offsets that are in both. */
  public OffsetRanges intersection(OffsetRanges other) {
    OffsetRanges both = new OffsetRanges();
    int i = 0;
    int j = 0;
    while (i < length && j < other.length) {
      both.add(Math.max(bounds[i], other.bounds[j]), Math.min(bounds[i + 1], other.bounds[j + 1]));
      if (bounds[i + 1] < other.bounds[j + 1]) {
        i += 2;
      } else {
        j += 2;
      }
    }
    return both;
  }

  /** Takes out, and gives, all offsets up to one. */
  public OffsetRanges takeUpto(long upto) {
    OffsetRanges taken = new OffsetRanges();
    int keep = 0;
    while (keep < length && bounds[keep + 1] <= upto) {
      taken.append(bounds[keep], bounds[keep + 1]);
      keep += 2;
    }
    if (keep < length && bounds[keep] < upto) {
      taken.append(bounds[keep], upto);
      bounds[keep] = upto;
    }
    System.arraycopy(bounds, keep, bounds, 0, length - keep);
    length -= keep;
    return taken;
  }

  public void clear() {
    length = 0;
  }

  /** Pairs of the offset before a range and its last one, ascending. */
  public List<Long> toList() {
    List<Long> list = new ArrayList<>(length);
    for (int i = 0; i < length; i++) {
      list.add(bounds[i]);
    }
    return list;
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof OffsetRanges ranges
        && Arrays.equals(bounds, 0, length, ranges.bounds, 0, ranges.length);
  }

  @Override
  public int hashCode() {
    return toList().hashCode();
  }

  @Override
  public String toString() {
    StringBuilder text = new StringBuilder("[");
    for (int i = 0; i < length; i += 2) {
      text.append(i == 0 ? "" : ", ").append(bounds[i] + 1).append("..").append(bounds[i + 1]);
    }
    return text.append(']').toString();
  }
}
