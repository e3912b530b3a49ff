package dev.freshet.connectors.kafka;

import java.io.IOException;
import org.apache.flink.api.connector.sink2.Sink;
import org.apache.flink.api.connector.sink2.SinkWriter;
import org.apache.flink.api.connector.sink2.WriterInitContext;
import org.apache.flink.connector.kafka.sink.KafkaSink;

/**
 * The writers of a Kafka sink that has no transactions to commit: a checkpoint waits until the
 * broker has all that was written before it.
 *
 * <p>The Kafka sink itself brings a committer along whatever its guarantee, an operator without
 * work; Flink's registers its metric {@code pendingCommittables} anew at each checkpoint, and logs
 * that it is there already.
 */
final class AtLeastOnceSink<T> implements Sink<T> {

  private static final long serialVersionUID = 1L;

  private final KafkaSink<T> kafka;

  /**
   * @param kafka of the guarantee {@code AT_LEAST_ONCE}
   */
  AtLeastOnceSink(KafkaSink<T> kafka) {
    this.kafka = kafka;
  }

  @Override
  public SinkWriter<T> createWriter(WriterInitContext context) throws IOException {
    return kafka.createWriter(context);
  }
}
