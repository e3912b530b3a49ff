package dev.freshet.operators.scheduling;

import dev.freshet.connectors.record.Event;
import dev.freshet.connectors.record.Feedback;
import org.apache.flink.api.common.typeutils.base.StringSerializer;
import org.apache.flink.api.java.functions.KeySelector;
import org.apache.flink.runtime.state.StateBackend;
import org.apache.flink.runtime.state.hashmap.HashMapStateBackend;
import org.apache.flink.state.rocksdb.EmbeddedRocksDBStateBackend;
import org.apache.flink.streaming.api.operators.Input;
import org.apache.flink.streaming.api.operators.Output;
import org.apache.flink.streaming.api.operators.StreamOperatorFactory;
import org.apache.flink.streaming.api.operators.TwoInputStreamOperator;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;
import org.apache.flink.streaming.util.AbstractStreamOperatorTestHarness;

/**
 * One subtask of an operator that is keyed by the event's key, with a real state backend and no
 * network: what is measured is the operator and its state.
 *
 * @param <OUT> what the operator emits
 */
final class OperatorHarness<OUT> extends AbstractStreamOperatorTestHarness<OUT> {

  /** Key groups, as in a table's default. */
  static final int MAX_PARALLELISM = 128;

  private static final String ROCKSDB_MEMORY = "512mb";

  /** How the operator takes in one record. */
  @FunctionalInterface
  private interface Process {
    void accept(StreamRecord<Event> record) throws Exception;
  }

  private Process process;

  OperatorHarness(StreamOperatorFactory<OUT> factory, String backend) throws Exception {
    super(factory, MAX_PARALLELISM, 1, 0);
    KeySelector<Event, String> key = Event::key;
    config.setStatePartitioner(0, key);
    KeySelector<Feedback, String> feedbackKey = Feedback::key;
    config.setStatePartitioner(1, feedbackKey);
    config.setStateKeySerializer(StringSerializer.INSTANCE);
    config.serializeAllConfigs();
    setStateBackend(backend(backend));
  }

  private static StateBackend backend(String name) {
    return switch (name) {
      case "heap" -> new HashMapStateBackend();
      case "rocksdb" -> rocksDb();
      default -> throw new IllegalArgumentException("no state backend '" + name + "'");
    };
  }

  private static StateBackend rocksDb() {
    EmbeddedRocksDBStateBackend backend = new EmbeddedRocksDBStateBackend();
    // The harness manages 32 MB, which would measure flushes; a default TaskManager has 512 MB.
    backend.getMemoryConfiguration().setFixedMemoryPerSlot(ROCKSDB_MEMORY);
    return backend;
  }

  /** Opens the operator in front of this output. */
  void start(Output<StreamRecord<OUT>> output) throws Exception {
    setOutputCreator(ignored -> output);
    setup();
    open();
    process = processOf(getOperator());
  }

  @SuppressWarnings("unchecked") // Both subjects take events as their first input.
  private static Process processOf(Object operator) {
    if (operator instanceof TwoInputStreamOperator<?, ?, ?>) {
      TwoInputStreamOperator<Event, ?, ?> two = (TwoInputStreamOperator<Event, ?, ?>) operator;
      return record -> {
        two.setKeyContextElement1(record);
        two.processElement1(record);
      };
    }
    Input<Event> one = (Input<Event>) operator;
    return record -> {
      one.setKeyContextElement(record);
      one.processElement(record);
    };
  }

  /** Hands one event to the operator. */
  void process(Event event) throws Exception {
    process.accept(new StreamRecord<>(event, event.timestampMs()));
  }
}
