package dev.freshet.connectors.kafka;

import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import dev.freshet.connectors.record.EntityKeys;
import java.io.IOException;
import java.util.function.LongSupplier;

/** The rules that events and feedback share: what a key and an event time may be. */
final class FieldRules {

  private final long maxFutureMs;
  private final LongSupplier wallClockMs;

  /**
   * @param maxFutureMs how far ahead of the wall clock a timestamp may be, milliseconds
   * @param wallClockMs the wall clock, epoch milliseconds
   */
  FieldRules(long maxFutureMs, LongSupplier wallClockMs) {
    this.maxFutureMs = maxFutureMs;
    this.wallClockMs = wallClockMs;
  }

  /** An entity key: a JSON string, or an integer taken as its digits. */
  static String key(String field, JsonParser parser) throws IOException, BadRecordException {
    JsonToken token = parser.currentToken();
    if (token != JsonToken.VALUE_STRING && token != JsonToken.VALUE_NUMBER_INT) {
      throw JsonObjectReader.wrongType(field, parser, "a string or an integer");
    }
    String key = parser.getText();
    String problem = EntityKeys.problem(key);
    if (problem != null) {
      throw new BadRecordException("field '" + field + "' " + problem);
    }
    return key;
  }

  /** An event time: epoch milliseconds, as an integer or a float without a fraction. */
  long timestampMs(String field, JsonParser parser) throws IOException, BadRecordException {
    JsonToken token = parser.currentToken();
    if (token == JsonToken.VALUE_NUMBER_INT) {
      if (parser.getNumberType() == JsonParser.NumberType.BIG_INTEGER) {
        throw outOfRange(field, parser.getText());
      }
      return checkTimestamp("field '" + field + "'", parser.getLongValue());
    }
    if (token == JsonToken.VALUE_NUMBER_FLOAT) {
      double number = JsonObjectReader.finiteNumber(field, parser, "epoch milliseconds");
      if (number == Math.rint(number) && Math.abs(number) < 0x1p53) {
        return checkTimestamp("field '" + field + "'", (long) number);
      }
      throw outOfRange(field, parser.getText());
    }
    throw JsonObjectReader.wrongType(field, parser, "epoch milliseconds, an integer");
  }

  /** Returns the timestamp, or throws if it is negative or too far ahead. */
  long checkTimestamp(String what, long timestampMs) throws BadRecordException {
    if (timestampMs < 0) {
      throw new BadRecordException(
          what + " is " + timestampMs + "; it must be epoch milliseconds, at least 0");
    }
    long nowMs = wallClockMs.getAsLong();
    if (timestampMs - nowMs > maxFutureMs) {
      throw new BadRecordException(
          what
              + " is "
              + timestampMs
              + ", "
              + (timestampMs - nowMs)
              + " ms ahead of the wall clock; check that it is in milliseconds, or raise max_future"
              + " (now "
              + maxFutureMs
              + " ms)");
    }
    return timestampMs;
  }

  private static BadRecordException outOfRange(String field, String text) {
    return new BadRecordException(
        "field '" + field + "' is " + text + "; it must be epoch milliseconds, an integer");
  }
}
