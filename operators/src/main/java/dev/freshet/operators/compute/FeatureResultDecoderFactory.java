package dev.freshet.operators.compute;

import dev.freshet.schemas.DeadLetter;
import dev.freshet.schemas.FeatureChange;
import org.apache.flink.streaming.api.operators.AbstractStreamOperatorFactory;
import org.apache.flink.streaming.api.operators.ChainingStrategy;
import org.apache.flink.streaming.api.operators.OneInputStreamOperatorFactory;
import org.apache.flink.streaming.api.operators.StreamOperator;
import org.apache.flink.streaming.api.operators.StreamOperatorParameters;
import org.apache.flink.util.OutputTag;

/** Factory of {@link FeatureResultDecoder}. */
public final class FeatureResultDecoderFactory extends AbstractStreamOperatorFactory<FeatureChange>
    implements OneInputStreamOperatorFactory<byte[], FeatureChange> {

  private static final long serialVersionUID = 1L;

  private final String table;
  private final OutputTag<DeadLetter> deadLetters;

  /**
   * A factory for one table.
   *
   * @param deadLetters side output of failed computations
   */
  public FeatureResultDecoderFactory(String table, OutputTag<DeadLetter> deadLetters) {
    this.table = table;
    this.deadLetters = deadLetters;
    // Behind the scheduler's chain: an outcome must be known when the scheduler's collect returns.
    setChainingStrategy(ChainingStrategy.ALWAYS);
  }

  @Override
  public <T extends StreamOperator<FeatureChange>> T createStreamOperator(
      StreamOperatorParameters<FeatureChange> parameters) {
    @SuppressWarnings("unchecked") // Flink's contract: T is this factory's operator.
    T operator = (T) new FeatureResultDecoder(parameters, table, deadLetters);
    return operator;
  }

  @Override
  @SuppressWarnings("rawtypes") // Flink's signature.
  public Class<? extends StreamOperator> getStreamOperatorClass(ClassLoader classLoader) {
    return FeatureResultDecoder.class;
  }
}
