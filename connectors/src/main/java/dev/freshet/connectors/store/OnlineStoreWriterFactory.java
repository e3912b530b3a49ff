package dev.freshet.connectors.store;

import dev.freshet.connectors.format.DeploymentConfig;
import dev.freshet.connectors.format.TableConfig;
import dev.freshet.schemas.FeatureChange;
import org.apache.flink.streaming.api.operators.AbstractStreamOperatorFactory;
import org.apache.flink.streaming.api.operators.ChainingStrategy;
import org.apache.flink.streaming.api.operators.OneInputStreamOperatorFactory;
import org.apache.flink.streaming.api.operators.StreamOperator;
import org.apache.flink.streaming.api.operators.StreamOperatorParameters;

/** Makes an {@link OnlineStoreWriter} with its task's mailbox. */
final class OnlineStoreWriterFactory extends AbstractStreamOperatorFactory<FeatureChange>
    implements OneInputStreamOperatorFactory<FeatureChange, FeatureChange> {

  private static final long serialVersionUID = 1L;

  private final TableConfig table;
  private final DeploymentConfig deployment;
  private final ChangeLog.Factory changeLogs;
  private final String definition;

  /**
   * @param changeLogs opens the log that the store is restored from
   * @param definition the table in JSON, as clients find it in the store
   */
  OnlineStoreWriterFactory(
      TableConfig table,
      DeploymentConfig deployment,
      ChangeLog.Factory changeLogs,
      String definition) {
    this.table = table;
    this.deployment = deployment;
    this.changeLogs = changeLogs;
    this.definition = definition;
    setChainingStrategy(ChainingStrategy.ALWAYS);
  }

  @Override
  @SuppressWarnings("unchecked")
  public <T extends StreamOperator<FeatureChange>> T createStreamOperator(
      StreamOperatorParameters<FeatureChange> parameters) {
    return (T) new OnlineStoreWriter(parameters, table, deployment, changeLogs, definition);
  }

  @Override
  @SuppressWarnings("rawtypes")
  public Class<? extends StreamOperator> getStreamOperatorClass(ClassLoader classLoader) {
    return OnlineStoreWriter.class;
  }
}
