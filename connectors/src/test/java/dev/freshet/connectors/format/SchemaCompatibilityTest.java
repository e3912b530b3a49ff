package dev.freshet.connectors.format;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.stream.Stream;
import org.apache.avro.Schema;
import org.apache.avro.SchemaCompatibility;
import org.apache.avro.SchemaCompatibility.Incompatibility;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Every schema reads what any release wrote, and the other way round: the policy in
 * docs/upgrading.md. That the check refuses what the policy forbids is tested with it.
 */
class SchemaCompatibilityTest {

  private static final Path SCHEMAS = Path.of("..", "schemas");
  private static final Path HISTORY = SCHEMAS.resolve("history");
  private static final String SUFFIX = ".avsc";

  static List<String> records() throws IOException {
    return names(SCHEMAS);
  }

  private static List<String> names(Path folder) throws IOException {
    try (Stream<Path> files = Files.list(folder)) {
      return files
          .map(file -> file.getFileName().toString())
          .filter(name -> name.endsWith(SUFFIX))
          .map(name -> name.substring(0, name.length() - SUFFIX.length()))
          .sorted()
          .toList();
    }
  }

  private static List<String> releases() throws IOException {
    try (Stream<Path> folders = Files.list(HISTORY)) {
      return folders.map(folder -> folder.getFileName().toString()).sorted().toList();
    }
  }

  private static Schema read(Path file) throws IOException {
    return new Schema.Parser().parse(file.toFile());
  }

  private static Schema parse(String json) {
    return new Schema.Parser().parse(json);
  }

  /** What of a schema does not fit the versions of it that there were before. */
  private static List<String> problems(Schema present, List<Schema> earlier) {
    List<String> found = new ArrayList<>();
    for (Schema before : earlier) {
      found.addAll(unreadable(present, before, "the present one cannot read an earlier one"));
      found.addAll(unreadable(before, present, "an earlier one cannot read the present one"));
    }
    return found;
  }

  private static List<String> unreadable(Schema reader, Schema writer, String what) {
    return SchemaCompatibility.checkReaderWriterCompatibility(reader, writer)
        .getResult()
        .getIncompatibilities()
        .stream()
        .map(each -> what + ": " + describe(each))
        .toList();
  }

  private static String describe(Incompatibility each) {
    return each.getType() + " at " + each.getLocation() + " (" + each.getMessage() + ")";
  }

  @ParameterizedTest
  @MethodSource("records")
  void everySchemaIsFullyCompatibleWithAllReleases(String name) throws IOException {
    List<Schema> earlier = new ArrayList<>();
    for (String release : releases()) {
      Path file = HISTORY.resolve(release).resolve(name + SUFFIX);
      if (Files.exists(file)) {
        earlier.add(read(file));
      }
    }
    assertThat(problems(read(SCHEMAS.resolve(name + SUFFIX)), earlier)).isEmpty();
  }

  @Test
  void noRecordOfAReleaseIsGone() throws IOException {
    for (String release : releases()) {
      assertThat(records()).containsAll(names(HISTORY.resolve(release)));
    }
  }

  /** The jar carries what the repository has, so that readers find it. */
  @Test
  void readersKnowTheSchemasOfAllReleases() throws IOException {
    assertThat(SchemaHistory.RELEASES).containsExactlyInAnyOrderElementsOf(releases());
    for (String release : SchemaHistory.RELEASES) {
      for (String name : names(HISTORY.resolve(release))) {
        Schema other = Schema.createRecord(name, "", "other", false, List.of());
        assertThat(SchemaHistory.of(other, List.of(release)))
            .containsExactly(read(HISTORY.resolve(release).resolve(name + SUFFIX)));
      }
    }
  }

  private static final String BEFORE =
      """
      {"type": "record", "name": "R", "fields": [
        {"name": "key", "type": "string"},
        {"name": "count", "type": "int", "default": 0},
        {"name": "kind", "default": "A", "type":
          {"type": "enum", "name": "Kind", "symbols": ["A", "B"], "default": "A"}},
        {"name": "plain", "default": "A", "type":
          {"type": "enum", "name": "Plain", "symbols": ["A", "B"]}}
      ]}
      """;

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      quoteCharacter = '`',
      textBlock =
          """
          {"name": "key"                   | {"name": "new", "type": "long"}, {"name": "key" | reader_field_missing_default_value
          {"name": "key", "type": "string"}, |                                               | reader_field_missing_default_value
          {"name": "key"                   | {"name": "id"                                   | reader_field_missing_default_value
          "type": "string"                 | "type": "boolean"                               | type_mismatch
          "type": "int"                    | "type": "long"                                  | type_mismatch
          "name": "R"                      | "name": "S"                                     | name_mismatch
          "Plain", "symbols": ["A", "B"]   | "Plain", "symbols": ["A"]                       | missing_enum_symbols
          "Plain", "symbols": ["A", "B"]   | "Plain", "symbols": ["A", "B", "C"]             | missing_enum_symbols
          """)
  void aChangeThatAnotherReleaseCannotFollowIsRefused(String old, String now, String reason) {
    assertThat(problems(changed(old, now == null ? "" : now), List.of(parse(BEFORE))))
        .anyMatch(problem -> problem.toLowerCase(Locale.ROOT).contains(reason));
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      quoteCharacter = '`',
      textBlock =
          """
          {"name": "key"                                  | {"name": "new", "type": "long", "default": 1}, {"name": "key"
          {"name": "count", "type": "int", "default": 0}, |
          "Kind", "symbols": ["A", "B"]                   | "Kind", "symbols": ["A", "B", "C"]
          """)
  void aChangeThatThePolicyAllowsIsNotRefused(String old, String now) {
    assertThat(problems(changed(old, now == null ? "" : now), List.of(parse(BEFORE)))).isEmpty();
  }

  @Test
  void aFieldThatComesBackWithAnotherTypeIsRefused() {
    Schema without = changed("{\"name\": \"count\", \"type\": \"int\", \"default\": 0},", "");
    Schema other = changed("\"int\", \"default\": 0", "\"string\", \"default\": \"\"");
    assertThat(problems(without, List.of(parse(BEFORE)))).isEmpty();
    assertThat(problems(other, List.of(without))).isEmpty();
    assertThat(problems(other, List.of(parse(BEFORE), without))).hasSize(2);
  }

  private static Schema changed(String old, String now) {
    assertThat(BEFORE).contains(old);
    return parse(BEFORE.replace(old, now));
  }
}
