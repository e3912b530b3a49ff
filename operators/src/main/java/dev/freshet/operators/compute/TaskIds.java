package dev.freshet.operators.compute;

import org.apache.flink.runtime.execution.Environment;

/** Names the board that the operators of one task share. */
public final class TaskIds {

  private TaskIds() {}

  /** One subtask's attempt at one table; the same for all operators of its chain. */
  public static String of(Environment environment, String table) {
    return environment.getExecutionId() + "/" + table;
  }
}
