package dev.freshet.operators.scheduling;

import dev.freshet.connectors.record.Event;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeutils.base.LongSerializer;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.util.Collector;

/** The least that a keyed operator can do: it counts the events of each key. The baseline. */
final class CounterOperator extends KeyedProcessFunction<String, Event, byte[]> {

  private static final long serialVersionUID = 1L;

  private transient ValueState<Long> count;

  @Override
  public void open(OpenContext context) {
    count =
        getRuntimeContext().getState(new ValueStateDescriptor<>("count", LongSerializer.INSTANCE));
  }

  @Override
  public void processElement(Event event, Context context, Collector<byte[]> out) throws Exception {
    Long before = count.value();
    count.update(before == null ? 1 : before + 1);
  }
}
