package dev.freshet.operators.scheduling;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Random;
import net.jqwik.api.Example;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import org.apache.flink.core.memory.DataInputDeserializer;
import org.apache.flink.core.memory.DataOutputSerializer;

/**
 * The record's bytes are in users' savepoints. If the golden bytes change, give the new layout a
 * new format number and keep reading this one.
 */
class KeyRecordSerializerTest {

  /** Every field of format 1 set to its own value, in order: 1, 2, 3 and so on. */
  private static final String FORMAT_1 =
      "01"
          + "0000000000000001" // versionTimestamp
          + "0002" // versionOrigin
          + "0000000000000003" // asOf
          + "0000000000000004" // updates
          + "4014000000000000" // regret 5.0
          + "0000000000000006" // errors
          + "0000000000000007" // queries
          + "0000000000000008" // pending
          + "0000000000000009" // oldestPending
          + "000000000000000a" // inFlightTimestamp
          + "000000000000000b" // inFlightAsOf
          + "000000000000000c" // inFlightPending
          + "000000000000000d" // lastChosenTimestamp
          + "0000000e" // failures
          + "000000000000000f" // retryAt
          + "00000010" // entries
          + "00000011" // trimAt
          + "0000000000000012" // newest
          + "0000000000000013"; // trimmedThrough

  private static final int BYTES_MAX = 200;

  private static final KeyRecordSerializer SERIALIZER = new KeyRecordSerializer();

  private static List<Field> fields() {
    return Arrays.stream(KeyRecord.class.getDeclaredFields())
        .filter(field -> !Modifier.isStatic(field.getModifiers()))
        .toList();
  }

  private static KeyRecord numbered() throws IllegalAccessException {
    KeyRecord record = new KeyRecord();
    int number = 0;
    for (Field field : fields()) {
      number++;
      if (field.getType() == long.class) {
        field.setLong(record, number);
      } else if (field.getType() == double.class) {
        field.setDouble(record, number);
      } else {
        field.setInt(record, number);
      }
    }
    return record;
  }

  private static byte[] bytes(KeyRecord record) throws IOException {
    DataOutputSerializer out = new DataOutputSerializer(64);
    SERIALIZER.serialize(record, out);
    return out.getCopyOfBuffer();
  }

  @Example
  void layoutOfFormat1IsPinned() throws Exception {
    assertThat(HexFormat.of().formatHex(bytes(numbered()))).isEqualTo(FORMAT_1);
    KeyRecord read =
        SERIALIZER.deserialize(new DataInputDeserializer(HexFormat.of().parseHex(FORMAT_1)));
    assertThat(read).usingRecursiveComparison().isEqualTo(numbered());
  }

  @Example
  void recordIsSmall() throws Exception {
    int size = bytes(new KeyRecord()).length;
    assertThat(size).isEqualTo(FORMAT_1.length() / 2).isLessThan(BYTES_MAX);
  }

  @Property
  void roundTripsAndCopiesDeeply(@ForAll long seed) throws Exception {
    Random random = new Random(seed);
    KeyRecord record = new KeyRecord();
    for (Field field : fields()) {
      if (field.getName().equals("versionOrigin")) {
        field.setInt(record, random.nextInt(65_536));
      } else if (field.getType() == long.class) {
        field.setLong(record, random.nextLong());
      } else if (field.getType() == double.class) {
        field.setDouble(record, random.nextGaussian());
      } else {
        field.setInt(record, random.nextInt());
      }
    }
    KeyRecord read = SERIALIZER.deserialize(new DataInputDeserializer(bytes(record)));
    assertThat(read).usingRecursiveComparison().isEqualTo(record);
    KeyRecord copy = SERIALIZER.copy(record);
    assertThat(copy).isNotSameAs(record).usingRecursiveComparison().isEqualTo(record);
    DataOutputSerializer copied = new DataOutputSerializer(64);
    SERIALIZER.copy(new DataInputDeserializer(bytes(record)), copied);
    assertThat(copied.getCopyOfBuffer()).isEqualTo(bytes(record));
  }

  @Example
  void laterFormatIsRefusedWithAReason() {
    byte[] later = HexFormat.of().parseHex(FORMAT_1);
    later[0] = 2;
    assertThatThrownBy(() -> SERIALIZER.deserialize(new DataInputDeserializer(later)))
        .isInstanceOf(IOException.class)
        .hasMessageContaining("format 2");
  }
}
