package dev.freshet.connectors.kafka;

import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import dev.freshet.connectors.format.TableConfig;
import dev.freshet.connectors.record.Event;
import dev.freshet.connectors.record.ValueKind;
import dev.freshet.schemas.Stage;
import java.io.IOException;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.function.LongSupplier;

/**
 * Parses a JSON event, its fields named by the table. A value of kind json may be an object or an
 * array and is kept byte for byte.
 */
final class EventParser extends JsonObjectReader implements RecordParser<Event> {

  private static final int KEY = 1;
  private static final int TIMESTAMP = 1 << 1;
  private static final int VALUE = 1 << 2;
  private static final int ID = 1 << 3;

  private static final VarHandle DOUBLE =
      MethodHandles.byteArrayViewVarHandle(double[].class, ByteOrder.LITTLE_ENDIAN);

  private final TableConfig.Source source;
  private final ValueKind kind;
  private final FieldRules rules;

  // The record in progress.
  private byte[] json;
  private String key;
  private long timestampMs;
  private long id;
  private byte[] value;

  /** Elements of the vector in progress; grows to the longest vector seen. */
  private byte[] vector = new byte[16 * Double.BYTES];

  EventParser(TableConfig config, LongSupplier wallClockMs) {
    super(
        config.source().key(),
        config.source().timestamp(),
        config.source().value(),
        config.source().id());
    this.source = config.source();
    this.kind = source.valueKind();
    this.rules = new FieldRules(config.maxFutureMs(), wallClockMs);
  }

  @Override
  public Event parse(byte[] json) throws BadRecordException {
    this.json = json;
    timestampMs = Ingested.NO_TIMESTAMP;
    id = 0;
    try {
      walk(json);
      requireFields();
      return new Event(key, timestampMs, id, kind, value);
    } catch (BadRecordException e) {
      throw new BadRecordException(e.getMessage(), timestampMs);
    }
  }

  private void requireFields() throws BadRecordException {
    if (!has(KEY)) {
      throw missing(source.key(), "it names the entity");
    }
    if (!has(TIMESTAMP)) {
      throw missing(source.timestamp(), "it is the event time, epoch milliseconds");
    }
    if (!has(VALUE)) {
      throw missing(source.value(), "it is what the feature is computed from");
    }
    if (source.id() != null && !has(ID)) {
      throw missing(source.id(), "it tells apart events of a key in one millisecond");
    }
  }

  @Override
  void read(int roles, String field, JsonParser parser) throws IOException, BadRecordException {
    if ((roles & VALUE) != 0) {
      value =
          switch (kind) {
            case SCALAR -> scalar(field, parser);
            case VECTOR -> vector(field, parser);
            case JSON -> tree(field, parser);
          };
      return;
    }
    if ((roles & KEY) != 0) {
      key = FieldRules.key(field, parser);
    }
    if ((roles & TIMESTAMP) != 0) {
      timestampMs = rules.timestampMs(field, parser);
    }
    if ((roles & ID) != 0) {
      id = id(field, parser);
    }
  }

  private static long id(String field, JsonParser parser) throws IOException, BadRecordException {
    JsonToken token = parser.currentToken();
    if (token != JsonToken.VALUE_STRING && !token.isNumeric()) {
      throw wrongType(field, parser, "a string or a number");
    }
    return EventIds.hash(parser.getText());
  }

  private static byte[] scalar(String field, JsonParser parser)
      throws IOException, BadRecordException {
    byte[] bytes = new byte[Double.BYTES];
    DOUBLE.set(bytes, 0, finiteNumber(field, parser, "a number (source.kind is scalar)"));
    return bytes;
  }

  private byte[] vector(String field, JsonParser parser) throws IOException, BadRecordException {
    if (parser.currentToken() != JsonToken.START_ARRAY) {
      throw wrongType(field, parser, "an array of numbers (source.kind is vector)");
    }
    int length = 0;
    for (JsonToken token = parser.nextToken();
        token != JsonToken.END_ARRAY;
        token = parser.nextToken()) {
      if (!token.isNumeric() || !Double.isFinite(parser.getDoubleValue())) {
        throw new BadRecordException(
            "element "
                + length / Double.BYTES
                + " of field '"
                + field
                + "' is "
                + (token.isNumeric() ? parser.getText() : describe(token))
                + "; every element of a vector must be a finite number");
      }
      if (length == vector.length) {
        vector = Arrays.copyOf(vector, 2 * length);
      }
      DOUBLE.set(vector, length, parser.getDoubleValue());
      length += Double.BYTES;
    }
    if (length == 0) {
      throw new BadRecordException(
          "field '" + field + "' is an empty array; a vector has at least one element");
    }
    return Arrays.copyOf(vector, length);
  }

  private byte[] tree(String field, JsonParser parser) throws IOException, BadRecordException {
    if (!parser.currentToken().isStructStart()) {
      throw wrongType(field, parser, "an object or an array (source.kind is json)");
    }
    int start = (int) parser.currentTokenLocation().getByteOffset();
    for (int depth = 1; depth > 0; ) {
      JsonToken token = parser.nextToken();
      if (token.isStructStart()) {
        depth++;
      } else if (token.isStructEnd()) {
        depth--;
      } else if (token == JsonToken.VALUE_NUMBER_FLOAT && parser.isNaN()) {
        throw new BadRecordException(
            "field '"
                + field
                + "' has "
                + parser.getText()
                + " in it, which is not JSON; send null"
                + " or leave it out");
      }
    }
    int end = (int) parser.currentLocation().getByteOffset();
    return Arrays.copyOfRange(json, start, end);
  }

  @Override
  public long timestampMs(Event event) {
    return event.timestampMs();
  }

  @Override
  public Stage stage() {
    return Stage.EVENT;
  }

  @Override
  public int maxBytes() {
    return source.maxEventBytes();
  }
}
