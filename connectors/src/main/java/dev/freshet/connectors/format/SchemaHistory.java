package dev.freshet.connectors.format;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.avro.Schema;
import org.apache.avro.SchemaNormalization;

/**
 * The schemas of releases, which ship in the jar: topics and stores hold records that any of them
 * wrote, so a reader needs them all.
 */
final class SchemaHistory {

  /** The folders of {@code schemas/history}. */
  static final List<String> RELEASES = List.of("0.1.0");

  private static final String FOLDER = "/schemas/history/";

  private SchemaHistory() {}

  /**
   * Versions of a record's schema that differ from the present one.
   *
   * @param current the present one
   */
  static List<Schema> of(Schema current) {
    return of(current, RELEASES);
  }

  static List<Schema> of(Schema current, List<String> releases) {
    long fingerprint = SchemaNormalization.parsingFingerprint64(current);
    List<Schema> earlier = new ArrayList<>();
    for (String release : releases) {
      try (InputStream file =
          SchemaHistory.class.getResourceAsStream(
              FOLDER + release + "/" + current.getName() + ".avsc")) {
        if (file == null) {
          continue; // The record came with a later release.
        }
        Schema schema = new Schema.Parser().parse(file);
        if (SchemaNormalization.parsingFingerprint64(schema) != fingerprint) {
          earlier.add(schema);
        }
      } catch (IOException e) {
        throw new UncheckedIOException("cannot read the schemas of release " + release, e);
      }
    }
    return earlier;
  }
}
