package dev.freshet.connectors.format;

import dev.freshet.connectors.record.RecordTypeInfo;
import dev.freshet.schemas.DeadLetter;
import dev.freshet.schemas.FeatureChange;
import dev.freshet.schemas.Progress;
import org.apache.avro.specific.SpecificRecordBase;

/** Type information of the generated Avro records, for streams and for state. */
public final class AvroRecordTypeInfo {

  /** Change events. */
  public static final RecordTypeInfo<FeatureChange> FEATURE_CHANGE = of(FeatureChange.class);

  /** Progress records. */
  public static final RecordTypeInfo<Progress> PROGRESS = of(Progress.class);

  /** Dead letters. */
  public static final RecordTypeInfo<DeadLetter> DEAD_LETTER = of(DeadLetter.class);

  private AvroRecordTypeInfo() {}

  /** Type information of one generated record class. */
  public static <T extends SpecificRecordBase> RecordTypeInfo<T> of(Class<T> type) {
    return new RecordTypeInfo<>(type, new AvroRecordSerializer<>(type));
  }
}
