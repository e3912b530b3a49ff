package dev.freshet.connectors.chunk;

import static java.nio.charset.StandardCharsets.UTF_8;

import dev.freshet.connectors.format.SingleObjectCodec;
import dev.freshet.connectors.record.Version;
import dev.freshet.schemas.FeatureChange;
import dev.freshet.schemas.Operation;
import dev.freshet.schemas.ValueEncoding;
import java.io.IOException;
import java.nio.ByteBuffer;
import org.apache.avro.Schema;

/**
 * Reads the records of {@code changes.<table>}, one of the hot paths: of this release's schema
 * without a record object in between, of other schemas through Avro. Thread-safe.
 */
public final class ChangeReader {

  private static final SchemaHeader HEADER = new SchemaHeader(FeatureChange.getClassSchema());
  private static final byte[] NO_VALUE = {};
  private static final int OPERATIONS = Operation.values().length;
  private static final int ENCODINGS = ValueEncoding.values().length;

  private final String table;
  private final byte[] tableName;
  private final SingleObjectCodec<FeatureChange> otherReleases =
      SingleObjectCodec.of(FeatureChange.class);

  /**
   * A reader of one table's changes.
   *
   * @param table name of the table; changes of another are refused
   * @param alsoReading schemas of other releases that may have written some
   */
  public ChangeReader(String table, Schema... alsoReading) {
    this.table = table;
    this.tableName = table.getBytes(UTF_8);
    for (Schema schema : alsoReading) {
      otherReleases.alsoReading(schema);
    }
  }

  /**
   * Reads a record's value.
   *
   * @param value may be null, which is refused
   * @throws BadChangeException if it is no change of the table, or one that no store can hold
   */
  public KeyChange read(byte[] value) throws BadChangeException {
    if (value == null) {
      throw new BadChangeException(
          "a record without a value is no change event; a delete is one of operation DELETE");
    }
    try {
      return HEADER.startsOf(value)
          ? read(new AvroInput(value, SchemaHeader.BYTES, value.length))
          : keyChange(otherReleases.decode(value));
    } catch (BadBytesException e) {
      throw new BadChangeException(
          "a FeatureChange of " + value.length + " bytes is damaged: " + e.getMessage());
    } catch (IllegalArgumentException | IOException e) {
      throw new BadChangeException(e.getMessage());
    }
  }

  private KeyChange read(AvroInput in) throws BadBytesException, BadChangeException {
    String other = in.readUnless(tableName);
    if (other != null) {
      throw otherTable(other);
    }
    String key = in.readString();
    Version version = new Version(in.readLong(), in.readInt());
    long eventTimeMs = in.readLong();
    long computedAtMs = in.readLong();
    boolean delete = in.readIndex(OPERATIONS) == Operation.DELETE.ordinal();
    int encoding = in.readIndex(ENCODINGS);
    boolean isFirst = in.readBoolean();
    byte[] packed = in.readBytes();
    float regretRemoved = (float) in.readDouble();
    in.expectEnd();
    return new KeyChange(
        key,
        version,
        eventTimeMs,
        computedAtMs,
        delete ? KeyChange.DELETE : encoding,
        isFirst,
        regretRemoved,
        // As the store, which keeps no value of a delete.
        delete ? NO_VALUE : packed);
  }

  private KeyChange keyChange(FeatureChange change) throws BadChangeException {
    if (!change.getTable().equals(table)) {
      throw otherTable(change.getTable());
    }
    boolean delete = change.getOperation() == Operation.DELETE;
    return new KeyChange(
        change.getKey(),
        new Version(change.getVersionTimestamp(), change.getVersionOrigin()),
        change.getEventTime(),
        change.getComputedAt(),
        delete ? KeyChange.DELETE : change.getEncoding().ordinal(),
        change.getIsFirst(),
        (float) change.getRegretRemoved(),
        delete ? NO_VALUE : bytes(change.getValue()));
  }

  private static byte[] bytes(ByteBuffer value) {
    byte[] bytes = new byte[value.remaining()];
    value.duplicate().get(bytes);
    return bytes;
  }

  private BadChangeException otherTable(String found) {
    return new BadChangeException(
        "it is a change of table '"
            + found
            + "' in the changes of '"
            + table
            + "'; each table has a topic of its own, see to its writer");
  }
}
