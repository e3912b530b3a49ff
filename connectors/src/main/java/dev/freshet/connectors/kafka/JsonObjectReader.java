package dev.freshet.connectors.kafka;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.core.StreamReadFeature;
import com.fasterxml.jackson.core.json.JsonReadFeature;
import com.fasterxml.jackson.core.json.UTF8StreamJsonParser;
import java.io.IOException;
import java.util.Arrays;
import java.util.regex.Pattern;

/**
 * Walks one JSON object in a single pass and hands each mapped field to a subclass. A field may
 * have several roles (an id may be the key, too); a role is one bit.
 *
 * <p>Not thread-safe: a subtask owns its reader.
 */
abstract class JsonObjectReader {

  /** Accepts NaN and Infinity as tokens only to reject them by name, with the field they are in. */
  private static final JsonFactory JSON =
      JsonFactory.builder()
          .enable(JsonReadFeature.ALLOW_NON_NUMERIC_NUMBERS)
          .enable(StreamReadFeature.USE_FAST_DOUBLE_PARSER)
          .build();

  /** What Jackson says of where its input is from, in the middle of a message: nothing. */
  private static final Pattern SOURCE = Pattern.compile("\\[Source: [^;]*; ");

  private final String[] fields;
  private final int[] roles;

  /** Roles seen in the current record, to catch a field that comes twice. */
  private int seen;

  /** {@code fields[i]} is the name of the field with the role {@code 1 << i}; null for none. */
  JsonObjectReader(String... fields) {
    String[] names = new String[fields.length];
    int[] bits = new int[fields.length];
    int count = 0;
    for (int role = 0; role < fields.length; role++) {
      if (fields[role] == null) {
        continue;
      }
      int at = Arrays.asList(names).subList(0, count).indexOf(fields[role]);
      if (at < 0) {
        at = count++;
        names[at] = fields[role];
      }
      bits[at] |= 1 << role;
    }
    this.fields = Arrays.copyOf(names, count);
    this.roles = Arrays.copyOf(bits, count);
  }

  /** Takes the value of a mapped field; leaves the parser at the value's last token. */
  abstract void read(int fieldRoles, String field, JsonParser parser)
      throws IOException, BadRecordException;

  /** Whether a field with this role came. */
  final boolean has(int role) {
    return (seen & role) != 0;
  }

  /** Walks the object in these bytes. */
  final void walk(byte[] json) throws BadRecordException {
    seen = 0;
    try (JsonParser parser = JSON.createParser(json)) {
      if (!(parser instanceof UTF8StreamJsonParser)) {
        throw new BadRecordException("the value is not UTF-8; encode JSON in UTF-8");
      }
      if (parser.nextToken() != JsonToken.START_OBJECT) {
        throw new BadRecordException(
            "the value is " + describe(parser.currentToken()) + "; send one JSON object a record");
      }
      for (String name = parser.nextFieldName(); name != null; name = parser.nextFieldName()) {
        parser.nextToken();
        int index = indexOf(name);
        if (index < 0) {
          parser.skipChildren();
          continue;
        }
        if ((seen & roles[index]) != 0) {
          throw new BadRecordException("field '" + name + "' comes twice; send it once");
        }
        seen |= roles[index];
        read(roles[index], name, parser);
      }
      if (parser.nextToken() != null) {
        throw new BadRecordException(
            "something follows the JSON object; send one JSON object a record");
      }
    } catch (JsonProcessingException e) {
      throw new BadRecordException(
          "the value is not JSON: "
              + SOURCE.matcher(e.getOriginalMessage()).replaceAll("[")
              + (e.getLocation() == null ? "" : " at byte " + e.getLocation().getByteOffset())
              + "; send one JSON object a record");
    } catch (IOException e) {
      throw new BadRecordException(
          "the value is not UTF-8 JSON: " + e.getMessage() + "; send one JSON object a record");
    }
  }

  private int indexOf(String name) {
    for (int i = 0; i < fields.length; i++) {
      if (fields[i].equals(name)) {
        return i;
      }
    }
    return -1;
  }

  static String describe(JsonToken token) {
    if (token == null) {
      return "empty";
    }
    return switch (token) {
      case START_OBJECT -> "an object";
      case START_ARRAY -> "an array";
      case VALUE_STRING -> "a string";
      case VALUE_NUMBER_INT, VALUE_NUMBER_FLOAT -> "a number";
      case VALUE_TRUE, VALUE_FALSE -> "a boolean";
      case VALUE_NULL -> "null";
      default -> "not a value";
    };
  }

  static BadRecordException wrongType(String field, JsonParser parser, String expected) {
    return new BadRecordException(
        "field '" + field + "' is " + describe(parser.currentToken()) + "; it must be " + expected);
  }

  static BadRecordException missing(String field, String why) {
    return new BadRecordException("field '" + field + "' is missing; " + why);
  }

  /** The finite number at the parser. */
  static double finiteNumber(String field, JsonParser parser, String expected)
      throws IOException, BadRecordException {
    if (!parser.currentToken().isNumeric()) {
      throw wrongType(field, parser, expected);
    }
    double number = parser.getDoubleValue();
    if (!Double.isFinite(number)) {
      throw new BadRecordException(
          "field '" + field + "' is " + parser.getText() + "; it must be a finite number");
    }
    return number;
  }
}
