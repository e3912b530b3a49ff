package dev.freshet.operators.dissemination;

import dev.freshet.connectors.link.Transport;
import java.io.Serializable;
import org.apache.flink.api.common.functions.RuntimeContext;

/** Opens what a subtask of the multicast job talks to the world with. */
interface Transports extends Serializable {

  /** The way to other regions' inboxes. */
  Transport transport(RuntimeContext context);

  /** The changes topics. */
  ChangeHistory history(RuntimeContext context);
}
