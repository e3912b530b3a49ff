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
 * Parses a model's feedback: {@code key}, {@code version} (null: the query found no value), {@code
 * error} (absent or null: a query without its label yet), optional {@code ts} and {@code errors};
 * or a demand: {@code key}, {@code demand} true, optional {@code ts}. Other fields are for other
 * readers.
 */
final class FeedbackParser extends JsonObjectReader implements RecordParser<Feedback> {

  private static final int KEY = 1;
  private static final int VERSION = 1 << 1;
  private static final int ERROR = 1 << 2;
  private static final int TIMESTAMP = 1 << 3;
  private static final int ERRORS = 1 << 4;
  private static final int DEMAND = 1 << 5;

  private final int maxBytes;
  private final FieldRules rules;

  // The record in progress.
  private String key;
  private Version version;
  private double error;
  private long timestampMs;
  private boolean demand;

  FeedbackParser(TableConfig config, LongSupplier wallClockMs) {
    super("key", "version", "error", "ts", "errors", "demand");
    this.maxBytes = config.source().maxEventBytes();
    this.rules = new FieldRules(config.maxFutureMs(), wallClockMs);
  }

  @Override
  public Feedback parse(byte[] json) throws BadRecordException {
    error = Double.NaN;
    timestampMs = Feedback.NO_TIMESTAMP;
    demand = false;
    try {
      walk(json);
      if (!has(KEY)) {
        throw missing("key", "it names the entity");
      }
      return demand ? checkedDemand() : checkedFeedback();
    } catch (BadRecordException e) {
      throw new BadRecordException(
          e.getMessage(),
          timestampMs == Feedback.NO_TIMESTAMP ? Ingested.NO_TIMESTAMP : timestampMs);
    }
  }

  private Feedback checkedDemand() throws BadRecordException {
    if (has(VERSION) || has(ERROR) || has(ERRORS)) {
      throw new BadRecordException(
          "field 'demand' is true in a record that is feedback, too; send a demand as a record of"
              + " its own");
    }
    return Feedback.ofDemand(key, timestampMs);
  }

  private Feedback checkedFeedback() throws BadRecordException {
    if (!has(VERSION)) {
      throw missing(
          "version",
          "it is the version that the client returned with the feature, or null when there was no"
              + " value");
    }
    return new Feedback(key, version, error, timestampMs);
  }

  @Override
  void read(int roles, String field, JsonParser parser) throws IOException, BadRecordException {
    boolean isNull = parser.currentToken() == JsonToken.VALUE_NULL;
    switch (roles) {
      case KEY -> key = FieldRules.key(field, parser);
      case VERSION -> version = isNull ? Version.NONE : version(field, parser);
      case ERROR -> error = isNull ? Double.NaN : error(field, parser);
      case TIMESTAMP ->
          timestampMs = isNull ? Feedback.NO_TIMESTAMP : rules.timestampMs(field, parser);
      case ERRORS -> {
        if (!isNull) {
          checkErrors(field, parser);
        }
      }
      case DEMAND -> demand = !isNull && bool(field, parser);
      default -> throw new IllegalStateException("roles " + roles + " of field '" + field + "'");
    }
  }

  private static Version version(String field, JsonParser parser)
      throws IOException, BadRecordException {
    if (parser.currentToken() != JsonToken.VALUE_STRING) {
      throw wrongType(
          field,
          parser,
          "a string, '<microseconds>.<origin>', as the client returned it, or null when there was"
              + " no value");
    }
    try {
      return Version.parse(parser.getText());
    } catch (IllegalArgumentException e) {
      throw new BadRecordException("field '" + field + "': " + e.getMessage());
    }
  }

  private static double error(String field, JsonParser parser)
      throws IOException, BadRecordException {
    return atLeastZero(field, finiteNumber(field, parser, "a number, null or absent"));
  }

  private static double atLeastZero(String field, double error) throws BadRecordException {
    if (error < 0) {
      throw new BadRecordException(
          "field '" + field + "' is " + error + "; an error is at least 0: send its size");
    }
    return error;
  }

  /** No policy uses the errors of all kept versions; a writer's mistake is told all the same. */
  private static void checkErrors(String field, JsonParser parser)
      throws IOException, BadRecordException {
    if (parser.currentToken() != JsonToken.START_ARRAY) {
      throw wrongType(field, parser, "an array of numbers and nulls, the newest version's first");
    }
    int count = 0;
    while (parser.nextToken() != JsonToken.END_ARRAY) {
      String element = field + "[" + count + "]";
      if (parser.currentToken() != JsonToken.VALUE_NULL) {
        atLeastZero(element, finiteNumber(element, parser, "a number or null"));
      }
      count++;
      if (count > TableConfig.MAX_KEEP_VERSIONS) {
        throw new BadRecordException(
            "field '"
                + field
                + "' has more than "
                + TableConfig.MAX_KEEP_VERSIONS
                + " elements; a table keeps no more versions of a value");
      }
    }
  }

  private static boolean bool(String field, JsonParser parser) throws BadRecordException {
    if (!parser.currentToken().isBoolean()) {
      throw wrongType(field, parser, "true or false");
    }
    return parser.currentToken() == JsonToken.VALUE_TRUE;
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
