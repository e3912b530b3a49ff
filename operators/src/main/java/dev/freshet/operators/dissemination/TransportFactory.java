package dev.freshet.operators.dissemination;

import dev.freshet.connectors.link.Transport;
import java.io.Serializable;
import org.apache.flink.api.common.functions.RuntimeContext;

/** Opens a subtask's way to other regions' inboxes. */
@FunctionalInterface
interface TransportFactory extends Serializable {
  Transport open(RuntimeContext context);
}
