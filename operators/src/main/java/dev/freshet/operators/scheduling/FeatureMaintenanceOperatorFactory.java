package dev.freshet.operators.scheduling;

import dev.freshet.connectors.record.Event;
import dev.freshet.connectors.record.Feedback;
import dev.freshet.schemas.DeadLetter;
import org.apache.flink.streaming.api.operators.AbstractStreamOperatorFactory;
import org.apache.flink.streaming.api.operators.ChainingStrategy;
import org.apache.flink.streaming.api.operators.StreamOperator;
import org.apache.flink.streaming.api.operators.StreamOperatorParameters;
import org.apache.flink.streaming.api.operators.TwoInputStreamOperatorFactory;
import org.apache.flink.util.OutputTag;

/** Factory of the operator that maintains one table's features. */
public final class FeatureMaintenanceOperatorFactory extends AbstractStreamOperatorFactory<byte[]>
    implements TwoInputStreamOperatorFactory<Event, Feedback, byte[]> {

  private static final long serialVersionUID = 1L;

  private final MaintenanceSettings settings;
  private final OutputTag<DeadLetter> deadLetters;

  /**
   * A factory for the table with these settings.
   *
   * @param deadLetters side output of windows that can't be computed
   */
  public FeatureMaintenanceOperatorFactory(
      MaintenanceSettings settings, OutputTag<DeadLetter> deadLetters) {
    this.settings = settings;
    this.deadLetters = deadLetters;
    setChainingStrategy(ChainingStrategy.ALWAYS);
  }

  @Override
  public <T extends StreamOperator<byte[]>> T createStreamOperator(
      StreamOperatorParameters<byte[]> parameters) {
    @SuppressWarnings("unchecked") // Flink's contract: T is this factory's operator.
    T operator = (T) new FeatureMaintenanceOperator(parameters, settings, deadLetters);
    return operator;
  }

  @Override
  @SuppressWarnings("rawtypes") // Flink's signature.
  public Class<? extends StreamOperator> getStreamOperatorClass(ClassLoader classLoader) {
    return FeatureMaintenanceOperator.class;
  }
}
