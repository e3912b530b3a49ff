package dev.freshet.benchmarks;

import org.apache.flink.runtime.event.WatermarkEvent;
import org.apache.flink.streaming.api.operators.Output;
import org.apache.flink.streaming.api.watermark.Watermark;
import org.apache.flink.streaming.runtime.streamrecord.LatencyMarker;
import org.apache.flink.streaming.runtime.streamrecord.RecordAttributes;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;
import org.apache.flink.streaming.runtime.watermarkstatus.WatermarkStatus;
import org.apache.flink.util.OutputTag;

/**
 * The end of a measured chain: counts records and drops everything.
 *
 * @param <T> type of the records
 */
public class CountingOutput<T> implements Output<StreamRecord<T>> {

  private long records;

  /** Records so far. */
  public long records() {
    return records;
  }

  @Override
  public void collect(StreamRecord<T> element) {
    records++;
  }

  @Override
  public <X> void collect(OutputTag<X> tag, StreamRecord<X> element) {}

  @Override
  public void emitWatermark(Watermark mark) {}

  @Override
  public void emitWatermark(WatermarkEvent mark) {}

  @Override
  public void emitWatermarkStatus(WatermarkStatus status) {}

  @Override
  public void emitLatencyMarker(LatencyMarker marker) {}

  @Override
  public void emitRecordAttributes(RecordAttributes attributes) {}

  @Override
  public void close() {}
}
