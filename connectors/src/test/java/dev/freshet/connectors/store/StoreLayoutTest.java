package dev.freshet.connectors.store;

import static dev.freshet.connectors.testing.Changes.delete;
import static dev.freshet.connectors.testing.Changes.upsert;
import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.freshet.connectors.chunk.KeyChange;
import dev.freshet.connectors.record.Version;
import dev.freshet.connectors.testing.Changes;
import dev.freshet.schemas.FeatureChange;
import dev.freshet.schemas.Operation;
import dev.freshet.schemas.ValueEncoding;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import net.jqwik.api.Example;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;
import net.jqwik.api.constraints.LongRange;
import net.jqwik.api.constraints.Size;

/** The layout: what is packed comes out again, and the bytes are those of the public contract. */
final class StoreLayoutTest {

  @Property
  void whatIsPackedComesOutAgain(
      @ForAll @LongRange(min = 0) long timestamp,
      @ForAll @IntRange(max = 0xFFFF) int origin,
      @ForAll long eventTimeMs,
      @ForAll long computedAtMs,
      @ForAll Operation operation,
      @ForAll ValueEncoding encoding,
      @ForAll @Size(max = 64) byte[] bytes) {
    byte[] value =
        encoding == ValueEncoding.FLOAT32_VECTOR
            ? Arrays.copyOf(bytes, bytes.length / 4 * 4)
            : bytes;
    FeatureChange change = upsert("k", timestamp, origin, 0);
    change.setOperation(operation);
    change.setEncoding(encoding);
    change.setEventTime(eventTimeMs);
    change.setComputedAt(computedAtMs);
    change.setValue(ByteBuffer.wrap(value));

    StoredValue stored = StoreLayout.decode(StoreLayout.encode(change));

    boolean deleted = operation == Operation.DELETE;
    assertThat(
            StoreLayout.encode(
                new KeyChange(
                    "k",
                    new Version(timestamp, origin),
                    eventTimeMs,
                    computedAtMs,
                    deleted ? KeyChange.DELETE : encoding.ordinal(),
                    false,
                    0,
                    deleted ? new byte[0] : value)))
        .as("as a region packs it")
        .isEqualTo(StoreLayout.encode(change));
    assertThat(stored.version()).isEqualTo(new Version(timestamp, origin));
    assertThat(stored.eventTimeMs()).isEqualTo(eventTimeMs);
    assertThat(stored.computedAtMs()).isEqualTo(computedAtMs);
    assertThat(stored.tombstone()).isEqualTo(deleted);
    assertThat(stored.encoding()).isEqualTo(deleted ? ValueEncoding.NONE : encoding);
    assertThat(stored.value()).isEqualTo(deleted ? new byte[0] : value);
    assertThat(change.getValue().remaining())
        .as("encoding does not consume")
        .isEqualTo(value.length);
  }

  @Example
  void theBytesAreThoseOfTheContract() {
    FeatureChange change = upsert("vm-17", 0x0102030405060708L, 0xA1B2, 1.5f);
    change.setEventTime(1);
    change.setComputedAt(2);
    assertThat(HexFormat.of().formatHex(StoreLayout.encode(change)))
        .isEqualTo(
            "01"
                + "02"
                + "b2a1"
                + "0807060504030201"
                + "0100000000000000"
                + "0200000000000000"
                + "0000c03f");
    assertThat(StoreLayout.key("eu:", "cpu_stl", "vm-17ü"))
        .isEqualTo("eu:cpu_stl:vm-17ü".getBytes(UTF_8));
  }

  /** Nests values as the server does. */
  private static byte[] nested(byte[] newest, byte[] older) {
    byte[] marked = newest.clone();
    marked[1] |= 8;
    return ByteBuffer.allocate(newest.length + older.length + Integer.BYTES)
        .order(ByteOrder.LITTLE_ENDIAN)
        .put(marked)
        .put(older)
        .putInt(older.length)
        .array();
  }

  @Example
  void takesApartWhatHoldsSeveralVersions() {
    byte[] third = StoreLayout.encode(delete("k", 1));
    byte[] second = StoreLayout.encode(upsert("k", 2, 0xFFFF, 2));
    byte[] first = StoreLayout.encode(upsert("k", 3, 1, 3));
    byte[] all = nested(first, nested(second, third));

    assertThat(StoreLayout.decode(all).version()).isEqualTo(new Version(3, 1));
    assertThat(StoreLayout.decode(all).value()).isEqualTo(StoreLayout.decode(first).value());
    assertThat(StoreLayout.decodeAll(all))
        .usingRecursiveComparison()
        .isEqualTo(
            List.of(
                StoreLayout.decode(first), StoreLayout.decode(second), StoreLayout.decode(third)));
    assertThat(StoreLayout.decodeAll(first)).hasSize(1);
  }

  @Example
  void refusesLengthsThatCannotBe() {
    byte[] value = StoreLayout.encode(upsert("k", 1, 0));
    byte[] both = nested(value, value);
    for (int length : new int[] {0, 27, value.length + 5, -1}) {
      ByteBuffer.wrap(both)
          .order(ByteOrder.LITTLE_ENDIAN)
          .putInt(both.length - Integer.BYTES, length);
      assertThatThrownBy(() -> StoreLayout.decode(both)).hasMessageContaining("it is damaged");
    }
    assertThatThrownBy(() -> StoreLayout.decode(nested(value, new byte[0])))
        .hasMessageContaining("it is damaged");
  }

  @Example
  void refusesWhatItCannotStore() {
    assertThatThrownBy(() -> StoreLayout.encode(upsert("k", -1, 1, 0)))
        .hasMessageContaining("key 'k'")
        .hasMessageContaining("at least 0");
    assertThatThrownBy(() -> StoreLayout.encode(upsert("k", 1, 0x10000, 0)))
        .hasMessageContaining("0 to 65535");
    FeatureChange ragged = upsert("k", 1, 0);
    ragged.setValue(ByteBuffer.allocate(3));
    assertThatThrownBy(() -> StoreLayout.encode(ragged)).hasMessageContaining("multiple of 4");
  }

  @Example
  void refusesWhatItDidNotWrite() {
    byte[] good = StoreLayout.encode(Changes.upsert("k", 1, 0));
    assertThatThrownBy(() -> StoreLayout.decode(new byte[27])).hasMessageContaining("27 bytes");
    byte[] newer = good.clone();
    newer[0] = 2;
    assertThatThrownBy(() -> StoreLayout.decode(newer)).hasMessageContaining("layout 2");
    for (int flags : new int[] {6, 14, 16, 255}) {
      byte[] flagged = good.clone();
      flagged[1] = (byte) flags;
      assertThatThrownBy(() -> StoreLayout.decode(flagged)).hasMessageContaining("flags " + flags);
    }
  }
}
