package dev.freshet.operators.dissemination;

import dev.freshet.connectors.kafka.LogRecord;
import dev.freshet.schemas.RegionReport;
import org.apache.flink.streaming.api.operators.AbstractStreamOperatorFactory;
import org.apache.flink.streaming.api.operators.ChainingStrategy;
import org.apache.flink.streaming.api.operators.StreamOperator;
import org.apache.flink.streaming.api.operators.StreamOperatorParameters;
import org.apache.flink.streaming.api.operators.TwoInputStreamOperatorFactory;

/** Makes a {@link MulticastOperator} with its task's mailbox. */
final class MulticastOperatorFactory extends AbstractStreamOperatorFactory<RegionReport>
    implements TwoInputStreamOperatorFactory<LogRecord, LogRecord, RegionReport> {

  private static final long serialVersionUID = 1L;

  private final MulticastSettings settings;
  private final Transports transports;

  MulticastOperatorFactory(MulticastSettings settings, Transports transports) {
    this.settings = settings;
    this.transports = transports;
    setChainingStrategy(ChainingStrategy.ALWAYS);
  }

  @Override
  @SuppressWarnings("unchecked") // Flink's contract: T is this factory's operator.
  public <T extends StreamOperator<RegionReport>> T createStreamOperator(
      StreamOperatorParameters<RegionReport> parameters) {
    return (T) new MulticastOperator(parameters, settings, transports);
  }

  @Override
  @SuppressWarnings("rawtypes") // Flink's signature.
  public Class<? extends StreamOperator> getStreamOperatorClass(ClassLoader classLoader) {
    return MulticastOperator.class;
  }
}
