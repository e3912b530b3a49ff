package dev.freshet.operators.scheduling;

import java.io.IOException;
import org.apache.flink.api.common.typeutils.SimpleTypeSerializerSnapshot;
import org.apache.flink.api.common.typeutils.TypeSerializerSnapshot;
import org.apache.flink.api.common.typeutils.base.TypeSerializerSingleton;
import org.apache.flink.core.memory.DataInputView;
import org.apache.flink.core.memory.DataOutputView;

/**
 * Serializer of {@link KeyRecord}. The first byte is the format's number: this build writes format
 * 2 and reads the savepoints of format 1, which has its first fields only.
 */
public final class KeyRecordSerializer extends TypeSerializerSingleton<KeyRecord> {

  private static final long serialVersionUID = 1L;
  private static final int FORMAT_1 = 1;
  private static final int FORMAT = 2;

  @Override
  public void serialize(KeyRecord record, DataOutputView target) throws IOException {
    target.writeByte(FORMAT);
    target.writeLong(record.versionTimestamp);
    target.writeShort(record.versionOrigin);
    target.writeLong(record.asOf);
    target.writeLong(record.updates);
    target.writeDouble(record.regret);
    target.writeLong(record.errors);
    target.writeLong(record.queries);
    target.writeLong(record.pending);
    target.writeLong(record.oldestPending);
    target.writeLong(record.inFlightTimestamp);
    target.writeLong(record.inFlightAsOf);
    target.writeLong(record.inFlightPending);
    target.writeLong(record.lastChosenTimestamp);
    target.writeInt(record.failures);
    target.writeLong(record.retryAt);
    target.writeInt(record.entries);
    target.writeInt(record.trimAt);
    target.writeLong(record.newest);
    target.writeLong(record.trimmedThrough);
    target.writeLong(record.baselineStep);
    target.writeDouble(record.baselineRegret);
    target.writeInt(record.baselineErrors);
    target.writeLong(record.incorporated);
    target.writeDouble(record.costNanos);
    target.writeDouble(record.recentError);
    target.writeLong(record.demandedAt);
    target.writeLong(record.inFlightDemandedAt);
  }

  @Override
  public KeyRecord deserialize(DataInputView source) throws IOException {
    int format = source.readByte();
    if (format != FORMAT && format != FORMAT_1) {
      throw new IOException(
          "key record has format "
              + format
              + ", this build reads up to "
              + FORMAT
              + "; restore the savepoint with the build that wrote it, or a later one");
    }
    KeyRecord record = new KeyRecord();
    readFormat1(record, source);
    if (format >= FORMAT) {
      readFormat2(record, source);
    }
    return record;
  }

  private static void readFormat1(KeyRecord record, DataInputView source) throws IOException {
    record.versionTimestamp = source.readLong();
    record.versionOrigin = source.readUnsignedShort();
    record.asOf = source.readLong();
    record.updates = source.readLong();
    record.regret = source.readDouble();
    record.errors = source.readLong();
    record.queries = source.readLong();
    record.pending = source.readLong();
    record.oldestPending = source.readLong();
    record.inFlightTimestamp = source.readLong();
    record.inFlightAsOf = source.readLong();
    record.inFlightPending = source.readLong();
    record.lastChosenTimestamp = source.readLong();
    record.failures = source.readInt();
    record.retryAt = source.readLong();
    record.entries = source.readInt();
    record.trimAt = source.readInt();
    record.newest = source.readLong();
    record.trimmedThrough = source.readLong();
  }

  private static void readFormat2(KeyRecord record, DataInputView source) throws IOException {
    record.baselineStep = source.readLong();
    record.baselineRegret = source.readDouble();
    record.baselineErrors = source.readInt();
    record.incorporated = source.readLong();
    record.costNanos = source.readDouble();
    record.recentError = source.readDouble();
    record.demandedAt = source.readLong();
    record.inFlightDemandedAt = source.readLong();
  }

  @Override
  public KeyRecord copy(KeyRecord from) {
    KeyRecord copy = new KeyRecord();
    copy.versionTimestamp = from.versionTimestamp;
    copy.versionOrigin = from.versionOrigin;
    copy.asOf = from.asOf;
    copy.updates = from.updates;
    copy.regret = from.regret;
    copy.errors = from.errors;
    copy.queries = from.queries;
    copy.pending = from.pending;
    copy.oldestPending = from.oldestPending;
    copy.inFlightTimestamp = from.inFlightTimestamp;
    copy.inFlightAsOf = from.inFlightAsOf;
    copy.inFlightPending = from.inFlightPending;
    copy.lastChosenTimestamp = from.lastChosenTimestamp;
    copy.failures = from.failures;
    copy.retryAt = from.retryAt;
    copy.entries = from.entries;
    copy.trimAt = from.trimAt;
    copy.newest = from.newest;
    copy.trimmedThrough = from.trimmedThrough;
    copy.baselineStep = from.baselineStep;
    copy.baselineRegret = from.baselineRegret;
    copy.baselineErrors = from.baselineErrors;
    copy.incorporated = from.incorporated;
    copy.costNanos = from.costNanos;
    copy.recentError = from.recentError;
    copy.demandedAt = from.demandedAt;
    copy.inFlightDemandedAt = from.inFlightDemandedAt;
    return copy;
  }

  @Override
  public boolean isImmutableType() {
    return false;
  }

  @Override
  public KeyRecord createInstance() {
    return new KeyRecord();
  }

  @Override
  public KeyRecord copy(KeyRecord from, KeyRecord reuse) {
    return copy(from);
  }

  @Override
  public int getLength() {
    return -1;
  }

  @Override
  public KeyRecord deserialize(KeyRecord reuse, DataInputView source) throws IOException {
    return deserialize(source);
  }

  @Override
  public void copy(DataInputView source, DataOutputView target) throws IOException {
    serialize(deserialize(source), target);
  }

  @Override
  public TypeSerializerSnapshot<KeyRecord> snapshotConfiguration() {
    return new Snapshot();
  }

  /** Snapshot of the serializer; the record's own format byte carries its evolution. */
  public static final class Snapshot extends SimpleTypeSerializerSnapshot<KeyRecord> {
    public Snapshot() {
      super(KeyRecordSerializer::new);
    }
  }
}
