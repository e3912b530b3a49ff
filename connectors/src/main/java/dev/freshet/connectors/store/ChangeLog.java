package dev.freshet.connectors.store;

import dev.freshet.connectors.format.DeploymentConfig;
import dev.freshet.connectors.format.TableConfig;
import dev.freshet.schemas.FeatureChange;
import java.io.Serializable;
import java.util.List;

/** The log of a table's changes, which the online store can be rebuilt from. */
interface ChangeLog extends AutoCloseable {

  /** Opens the part of the log that one subtask reads. */
  @FunctionalInterface
  interface Factory extends Serializable {
    ChangeLog open(TableConfig table, DeploymentConfig deployment, int subtask, int parallelism);
  }

  /** Takes the changes that were read. */
  @FunctionalInterface
  interface Sink {
    void accept(List<FeatureChange> changes) throws InterruptedException;
  }

  /**
   * Reads from where the last call ended, at first from the beginning, up to the log's end as of
   * now. Where it fails it may be called again and goes on after the last changes that the sink
   * took.
   *
   * @throws Exception if the log cannot be read
   */
  void readToEnd(Sink sink) throws Exception;

  @Override
  void close();
}
