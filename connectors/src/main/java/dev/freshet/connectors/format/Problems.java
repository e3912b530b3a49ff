package dev.freshet.connectors.format;

import java.util.ArrayList;
import java.util.List;

/** Collects what is wrong with a configuration, so that every problem is reported at once. */
public final class Problems {

  private final String what;
  private final List<String> problems = new ArrayList<>();

  public Problems(String what) {
    this.what = what;
  }

  public void require(boolean condition, String problem) {
    if (!condition) {
      problems.add(problem);
    }
  }

  public void requireText(String value, String field) {
    require(
        value != null && !value.isEmpty(), field + " is missing; it must be a non-empty string");
  }

  public void requireAtLeast(long value, long minimum, String field) {
    require(value >= minimum, field + " is " + value + "; it must be at least " + minimum);
  }

  /** Throws if anything was collected. */
  public void check() {
    if (!problems.isEmpty()) {
      throw new IllegalArgumentException(
          what + " has " + problems.size() + " problem(s): " + String.join("; ", problems));
    }
  }
}
