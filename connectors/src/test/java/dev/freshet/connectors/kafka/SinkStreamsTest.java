package dev.freshet.connectors.kafka;

import static org.assertj.core.api.Assertions.assertThat;

import dev.freshet.connectors.format.AvroRecordTypeInfo;
import dev.freshet.connectors.testing.Changes;
import dev.freshet.connectors.testing.TestConfigs;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.graph.StreamNode;
import org.junit.jupiter.api.Test;

/** Goal: a sink is a writer and nothing else; that it writes is what PipelineTest shows. */
final class SinkStreamsTest {

  @Test
  void noSinkHasACommitterWithoutWork() {
    StreamExecutionEnvironment env = StreamExecutionEnvironment.createLocalEnvironment(1);
    SinkStreams.changes(
        env.fromData(AvroRecordTypeInfo.FEATURE_CHANGE, Changes.upsert("k", 5, 1.5f)),
        TestConfigs.table(),
        TestConfigs.deployment("redis://127.0.0.1:1", false));
    assertThat(env.getStreamGraph().getStreamNodes())
        .extracting(StreamNode::getOperatorName)
        .anyMatch(name -> name.contains("Write to changes.cpu_stl"))
        .noneMatch(name -> name.contains("Committer"));
  }
}
