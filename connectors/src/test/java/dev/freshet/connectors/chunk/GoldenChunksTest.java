package dev.freshet.connectors.chunk;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.freshet.connectors.record.Version;
import dev.freshet.schemas.Purpose;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * The chunks in tests/data/chunks, one written by each language, say what content.json says; so
 * does what is written here. {@code -Dfreshet.write-golden=true} writes Java's anew.
 */
final class GoldenChunksTest {

  private static final Path FOLDER = Path.of("..", "tests", "data", "chunks");

  private static ChunkHeader header;
  private static List<ChunkEntry> entries;

  private final ChunkCodec codec = new ChunkCodec();

  @BeforeAll
  static void readContent() throws IOException {
    JsonNode content = new ObjectMapper().readTree(FOLDER.resolve("content.json").toFile());
    header = header(content);
    entries = new ArrayList<>();
    content.get("changes").forEach(change -> entries.add(entry(change)));
    if (Boolean.getBoolean("freshet.write-golden")) {
      Files.write(FOLDER.resolve("java.chunk"), new ChunkCodec().encode(header, entries));
    }
  }

  private static ChunkHeader header(JsonNode content) {
    Map<String, Long> clocks = new HashMap<>();
    Route route = route(content.get("route"), clocks);
    List<Covered> coverage = new ArrayList<>();
    for (JsonNode range : content.get("coverage")) {
      coverage.add(
          new Covered(
              range.get("shard").intValue(),
              range.get("after").longValue(),
              range.get("upto").longValue()));
    }
    return new ChunkHeader(
        content.get("id").longValue(),
        content.get("sender").textValue(),
        content.get("table").textValue(),
        content.get("log").textValue(),
        Purpose.valueOf(content.get("purpose").textValue()),
        content.get("plan").longValue(),
        content.get("stripe").intValue(),
        route,
        clocks,
        coverage,
        content.get("sent_at_micros").longValue(),
        content.get("deadline_ms").longValue());
  }

  private static Route route(JsonNode hop, Map<String, Long> clocks) {
    String region = hop.get("region").textValue();
    if (!hop.get("clock_ahead_micros").isNull()) {
      clocks.put(region, hop.get("clock_ahead_micros").longValue());
    }
    List<Route> children = new ArrayList<>();
    hop.get("children").forEach(child -> children.add(route(child, clocks)));
    return new Route(region, hop.get("applies").booleanValue(), children);
  }

  private static ChunkEntry entry(JsonNode change) {
    return new ChunkEntry(
        change.get("shard").intValue(),
        change.get("offset").longValue(),
        new KeyChange(
            change.get("key").textValue(),
            Version.parse(change.get("version").textValue()),
            change.get("event_time").longValue(),
            change.get("computed_at").longValue(),
            change.get("kind").intValue(),
            change.get("is_first").booleanValue(),
            change.get("regret_removed").floatValue(),
            HexFormat.of().parseHex(change.get("value").textValue())));
  }

  @ParameterizedTest
  @ValueSource(strings = {"java.chunk", "python.chunk"})
  void saysWhatTheContentSays(String file) throws Exception {
    assertContent(Files.readAllBytes(FOLDER.resolve(file)));
  }

  @Test
  void soDoesWhatIsWrittenHere() throws Exception {
    assertContent(codec.encode(header, entries));
  }

  private void assertContent(byte[] wire) throws DamagedChunkException {
    Chunk chunk = codec.decode(wire);
    assertThat(chunk.header()).isEqualTo(header);
    assertThat(codec.entries(chunk)).usingRecursiveComparison().isEqualTo(entries);
  }
}
