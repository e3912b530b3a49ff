package dev.freshet.connectors.kafka;

import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import dev.freshet.connectors.format.TableConfig;
import dev.freshet.connectors.record.Feedback;
import dev.freshet.connectors.record.Version;
import dev.freshet.schemas.Stage;
import java.io.IOException;
import java.util.function.LongSupplier;

/**
 * Parses a model's feedback: {@code key}, {@code version}, {@code error} (absent or null: a query
 * without its label yet), optional {@code ts}; other fields are for other readers.
 */
final class FeedbackParser extends JsonObjectReader implements RecordParser<Feedback> {

  private static final int KEY = 1;
  private static final int VERSION = 1 << 1;
  private static final int ERROR = 1 << 2;
  private static final int TIMESTAMP = 1 << 3;

  private final int maxBytes;
  private final FieldRules rules;

  // The record in progress.
  private String key;
  private Version version;
  private double error;
  private long timestampMs;

  FeedbackParser(TableConfig config, LongSupplier wallClockMs) {
    super("key", "version", "error", "ts");
    this.maxBytes = config.source().maxEventBytes();
    this.rules = new FieldRules(config.maxFutureMs(), wallClockMs);
  }

  @Override
  public Feedback parse(byte[] json) throws BadRecordException {
    error = Double.NaN;
    timestampMs = Feedback.NO_TIMESTAMP;
    try {
      walk(json);
      if (!has(KEY)) {
        throw missing("key", "it names the entity");
      }
      if (!has(VERSION)) {
        throw missing("version", "it is the version that the client returned with the feature");
      }
      return new Feedback(key, version, error, timestampMs);
    } catch (BadRecordException e) {
      throw new BadRecordException(
          e.getMessage(),
          timestampMs == Feedback.NO_TIMESTAMP ? Ingested.NO_TIMESTAMP : timestampMs);
    }
  }

  @Override
  void read(int roles, String field, JsonParser parser) throws IOException, BadRecordException {
    boolean isNull = parser.currentToken() == JsonToken.VALUE_NULL;
    switch (roles) {
      case KEY -> key = FieldRules.key(field, parser);
      case VERSION -> version = version(field, parser);
      case ERROR -> error = isNull ? Double.NaN : error(field, parser);
      case TIMESTAMP ->
          timestampMs = isNull ? Feedback.NO_TIMESTAMP : rules.timestampMs(field, parser);
      default -> throw new IllegalStateException("roles " + roles + " of field '" + field + "'");
    }
  }

  private static Version version(String field, JsonParser parser)
      throws IOException, BadRecordException {
    if (parser.currentToken() != JsonToken.VALUE_STRING) {
      throw wrongType(
          field, parser, "a string, '<microseconds>.<origin>', as the client returned it");
    }
    try {
      return Version.parse(parser.getText());
    } catch (IllegalArgumentException e) {
      throw new BadRecordException("field '" + field + "': " + e.getMessage());
    }
  }

  private static double error(String field, JsonParser parser)
      throws IOException, BadRecordException {
    double error = finiteNumber(field, parser, "a number, null or absent");
    if (error < 0) {
      throw new BadRecordException(
          "field '" + field + "' is " + error + "; an error is at least 0: send its size");
    }
    return error;
  }

  @Override
  public long timestampMs(Feedback feedback) {
    return feedback.timestampMs() == Feedback.NO_TIMESTAMP
        ? Ingested.NO_TIMESTAMP
        : feedback.timestampMs();
  }

  @Override
  public Stage stage() {
    return Stage.FEEDBACK;
  }

  @Override
  public int maxBytes() {
    return maxBytes;
  }
}
