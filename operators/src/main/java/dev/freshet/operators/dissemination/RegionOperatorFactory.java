package dev.freshet.operators.dissemination;

import dev.freshet.connectors.format.RegionsConfig;
import dev.freshet.connectors.kafka.LogRecord;
import dev.freshet.schemas.RegionReport;
import org.apache.flink.streaming.api.operators.AbstractStreamOperatorFactory;
import org.apache.flink.streaming.api.operators.OneInputStreamOperatorFactory;
import org.apache.flink.streaming.api.operators.StreamOperator;
import org.apache.flink.streaming.api.operators.StreamOperatorParameters;

/** Makes a {@link RegionOperator} with its task's mailbox. */
final class RegionOperatorFactory extends AbstractStreamOperatorFactory<RegionReport>
    implements OneInputStreamOperatorFactory<LogRecord, RegionReport> {

  private static final long serialVersionUID = 1L;

  private final RegionSettings settings;
  private final RegionsConfig config;
  private final TransportFactory transports;

  /**
   * @throws IllegalArgumentException if the settings are not for the configured region
   */
  RegionOperatorFactory(
      RegionSettings settings, RegionsConfig config, TransportFactory transports) {
    if (!settings.region().equals(config.region())) {
      throw new IllegalArgumentException(
          "the region job's settings are for region "
              + settings.region()
              + ", and its configuration is of "
              + config.region()
              + "; submit it with the configuration of its own region");
    }
    if (settings.applies() && config.redis() == null) {
      throw new IllegalArgumentException(
          "region "
              + config.region()
              + " is to keep tables and has no online store; set redis in its configuration, or"
              + " applies to false");
    }
    this.settings = settings;
    this.config = config;
    this.transports = transports;
  }

  @Override
  @SuppressWarnings("unchecked")
  public <T extends StreamOperator<RegionReport>> T createStreamOperator(
      StreamOperatorParameters<RegionReport> parameters) {
    return (T) new RegionOperator(parameters, settings, config, transports);
  }

  @Override
  @SuppressWarnings("rawtypes")
  public Class<? extends StreamOperator> getStreamOperatorClass(ClassLoader classLoader) {
    return RegionOperator.class;
  }
}
