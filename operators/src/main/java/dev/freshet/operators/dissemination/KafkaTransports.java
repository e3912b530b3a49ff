package dev.freshet.operators.dissemination;

import dev.freshet.connectors.format.RegionsConfig;
import dev.freshet.connectors.link.KafkaTransport;
import dev.freshet.connectors.link.Transport;
import org.apache.flink.api.common.functions.RuntimeContext;

/** Kafka: inboxes on the regions' brokers, and the changes topics on home's. */
final class KafkaTransports implements Transports {

  private static final long serialVersionUID = 1L;

  private final RegionsConfig regions;

  KafkaTransports(RegionsConfig regions) {
    this.regions = regions;
  }

  @Override
  public Transport transport(RuntimeContext context) {
    return new KafkaTransport(regions, clientId("links", context));
  }

  @Override
  public ChangeHistory history(RuntimeContext context) {
    return new KafkaChangeHistory(regions.homeKafkaProperties(), clientId("history", context));
  }

  private String clientId(String what, RuntimeContext context) {
    return regions.group() + "-" + what + "-" + context.getTaskInfo().getIndexOfThisSubtask();
  }
}
