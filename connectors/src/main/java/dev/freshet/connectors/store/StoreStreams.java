package dev.freshet.connectors.store;

import dev.freshet.connectors.format.AvroRecordTypeInfo;
import dev.freshet.connectors.format.DeploymentConfig;
import dev.freshet.connectors.format.TableConfig;
import dev.freshet.schemas.FeatureChange;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;

/** Composes the online store into a job: changes -> write if newer -> acknowledged changes. */
public final class StoreStreams {

  private StoreStreams() {}

  /**
   * Writes changes to the region's online store.
   *
   * @throws IllegalArgumentException if a configuration is not valid
   */
  public static Written write(
      DataStream<FeatureChange> changes, String tableJson, String deploymentJson) {
    TableConfig table = TableConfig.parse(tableJson);
    DeploymentConfig deployment = DeploymentConfig.parse(deploymentJson);
    SingleOutputStreamOperator<FeatureChange> written =
        changes
            .transform(
                "Write " + table.table() + " to the online store",
                AvroRecordTypeInfo.FEATURE_CHANGE,
                new OnlineStoreWriterFactory(table, deployment, KafkaChangeLog::new, tableJson))
            .uid(deployment.uid("online-store-writer"))
            .setParallelism(table.parallelism());
    return new Written(
        written,
        written.getSideOutput(OnlineStoreWriter.PROGRESS),
        written.getSideOutput(OnlineStoreWriter.DEAD_LETTERS));
  }
}
