package dev.freshet.connectors.chunk;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.freshet.connectors.format.SingleObjectCodec;
import dev.freshet.connectors.testing.Changes;
import dev.freshet.connectors.testing.TestConfigs;
import dev.freshet.schemas.FeatureChange;
import dev.freshet.schemas.Operation;
import dev.freshet.schemas.Progress;
import dev.freshet.schemas.ValueEncoding;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Set;
import java.util.function.Consumer;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Example;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.avro.message.BinaryMessageEncoder;

/** What the store writer emits is read as it is; anything else is refused with the reason. */
final class ChangeReaderTest {

  private static final SingleObjectCodec<FeatureChange> CODEC =
      SingleObjectCodec.of(FeatureChange.class);

  private final ChangeReader reader = new ChangeReader(TestConfigs.TABLE);

  @Provide
  Arbitrary<KeyChange> changes() {
    return Chunks.anyChange();
  }

  @Property(tries = 200)
  void readsWhatAvroWrites(@ForAll("changes") KeyChange change) throws Exception {
    assertThat(reader.read(CODEC.encode(record(change))))
        .usingRecursiveComparison()
        .isEqualTo(change);
  }

  private static FeatureChange record(KeyChange change) {
    boolean delete = change.kind() == KeyChange.DELETE;
    return FeatureChange.newBuilder()
        .setTable(TestConfigs.TABLE)
        .setKey(change.key())
        .setVersionTimestamp(change.version().timestampMicros())
        .setVersionOrigin(change.version().origin())
        .setEventTime(change.eventTimeMs())
        .setComputedAt(change.computedAtMs())
        .setOperation(delete ? Operation.DELETE : Operation.UPSERT)
        .setEncoding(delete ? ValueEncoding.NONE : ValueEncoding.values()[change.kind()])
        .setValue(ByteBuffer.wrap(change.value()))
        .setIsFirst(change.isFirst())
        .setRegretRemoved(change.regretRemoved())
        .build();
  }

  @Example
  void readsWhatAnotherReleaseWroteIfItsSchemaIsKnown() throws Exception {
    Schema current = FeatureChange.getClassSchema();
    Schema older =
        Schema.createRecord(
            current.getName(),
            null,
            current.getNamespace(),
            false,
            current.getFields().stream()
                .filter(field -> !Set.of("regret_removed", "is_first").contains(field.name()))
                .map(field -> new Schema.Field(field, field.schema()))
                .toList());
    FeatureChange change = Changes.upsert("k", 5, 1.5f);
    GenericData.Record old = new GenericData.Record(older);
    for (Schema.Field field : older.getFields()) {
      Object value = change.get(field.name());
      old.put(
          field.name(),
          value instanceof Enum<?> symbol
              ? new GenericData.EnumSymbol(field.schema(), symbol.name())
              : value);
    }
    ByteBuffer encoded =
        new BinaryMessageEncoder<GenericData.Record>(GenericData.get(), older).encode(old);
    byte[] bytes = Arrays.copyOf(encoded.array(), encoded.limit());

    assertThat(new ChangeReader(TestConfigs.TABLE, older).read(bytes))
        .usingRecursiveComparison()
        .isEqualTo(reader.read(CODEC.encode(change)));
    assertRefused(bytes, "not known here");
  }

  @Example
  void whatNoStoreCanHoldIsRefused() {
    assertRefused(changed(c -> c.setVersionTimestamp(-1)), "timestamp is at least 0");
    assertRefused(changed(c -> c.setVersionOrigin(65_536)), "0 to 65535");
    assertRefused(changed(c -> c.setVersionOrigin(-1)), "0 to 65535");
    assertRefused(changed(c -> c.setValue(ByteBuffer.allocate(5))), "multiple of 4");
  }

  @Example
  void aDeletesValueIsDropped() throws Exception {
    KeyChange change = reader.read(changed(c -> c.setOperation(Operation.DELETE)));
    assertThat(change.kind()).isEqualTo(KeyChange.DELETE);
    assertThat(change.value()).isEmpty();
  }

  private static byte[] changed(Consumer<FeatureChange> edit) {
    FeatureChange change = Changes.upsert("k", 5, 1.5f);
    edit.accept(change);
    return CODEC.encode(change);
  }

  @Example
  void foreignRecordsAreRefused() {
    assertRefused(null, "without a value");
    assertRefused(new byte[0], "FeatureChange");
    assertRefused("{\"key\": 1}".getBytes(StandardCharsets.UTF_8), "FeatureChange");
    byte[] progress =
        SingleObjectCodec.of(Progress.class).encode(new Progress("r", "t", 0, 1, 2L, 3L, 4L));
    assertRefused(progress, "not known here");
    assertRefused(changed(c -> c.setTable("other")), "table 'other'");
  }

  @Example
  void everyCutIsRefusedAndNoDamageThrowsAnythingElse() {
    byte[] whole = changed(c -> c.setKey("ü\uFFFD"));
    for (int at = 0; at < whole.length; at++) {
      assertRefused(Arrays.copyOf(whole, at), "");
      for (int bits : new int[] {1, 0x40, 0x80, 0xFF}) {
        byte[] damaged = whole.clone();
        damaged[at] ^= (byte) bits;
        readOrRefuse(damaged);
      }
    }
    assertRefused(Arrays.copyOf(whole, whole.length + 1), "1 bytes follow");
  }

  private void readOrRefuse(byte[] damaged) {
    try {
      assertThat(reader.read(damaged)).isNotNull();
    } catch (BadChangeException e) {
      assertThat(e).hasMessageMatching("(?s).{10,}");
    }
  }

  @Example
  void textThatIsNoUtf8IsRefused() {
    byte[] bytes = changed(c -> c.setKey("abcd"));
    int at = new String(bytes, StandardCharsets.ISO_8859_1).indexOf("abcd");
    for (int[] malformed : new int[][] {{0x80, 'a'}, {0xC3, 'a'}, {0xED, 0xA0}, {0xF0, 0x9F}}) {
      bytes[at] = (byte) malformed[0];
      bytes[at + 1] = (byte) malformed[1];
      assertRefused(bytes, "not UTF-8");
    }
  }

  private void assertRefused(byte[] value, String reason) {
    assertThatThrownBy(() -> reader.read(value))
        .isInstanceOf(BadChangeException.class)
        .hasMessageContaining(reason);
  }
}
