package dev.freshet.operators.scheduling;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.freshet.connectors.record.Version;
import java.io.IOException;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
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

  /** A record as format 1 wrote it: its fields are 1, 2, 3 and so on. */
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

  /** What format 2 has after the fields of format 1, numbered on. */
  private static final String FORMAT_2_FIELDS =
      "0000000000000014" // baselineStep
          + "4035000000000000" // baselineRegret 21.0
          + "00000016" // baselineErrors
          + "0000000000000017" // incorporated
          + "4038000000000000" // costNanos 24.0
          + "4039000000000000" // recentError 25.0
          + "000000000000001a" // demandedAt
          + "000000000000001b"; // inFlightDemandedAt

  private static final String FORMAT_2 = "02" + FORMAT_1.substring(2) + FORMAT_2_FIELDS;

  /** Fields in the order of the bytes. */
  private static final List<String> FORMAT_1_NAMES =
      List.of(
          "versionTimestamp",
          "versionOrigin",
          "asOf",
          "updates",
          "regret",
          "errors",
          "queries",
          "pending",
          "oldestPending",
          "inFlightTimestamp",
          "inFlightAsOf",
          "inFlightPending",
          "lastChosenTimestamp",
          "failures",
          "retryAt",
          "entries",
          "trimAt",
          "newest",
          "trimmedThrough");

  private static final List<String> FORMAT_2_NAMES =
      List.of(
          "baselineStep",
          "baselineRegret",
          "baselineErrors",
          "incorporated",
          "costNanos",
          "recentError",
          "demandedAt",
          "inFlightDemandedAt");

  private static final int BYTES_MAX = 200;

  private static final KeyRecordSerializer SERIALIZER = new KeyRecordSerializer();

  private static List<Field> fields() {
    return Arrays.stream(KeyRecord.class.getDeclaredFields())
        .filter(field -> !Modifier.isStatic(field.getModifiers()))
        .toList();
  }

  /** A record with so many of its fields, in the order of the bytes, set to 1, 2, 3 and so on. */
  private static KeyRecord numbered(List<String> names) throws ReflectiveOperationException {
    KeyRecord record = new KeyRecord();
    int number = 0;
    for (String name : names) {
      Field field = KeyRecord.class.getDeclaredField(name);
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

  private static KeyRecord read(String hex) throws IOException {
    return SERIALIZER.deserialize(new DataInputDeserializer(HexFormat.of().parseHex(hex)));
  }

  @Example
  void layoutOfFormat2IsPinned() throws Exception {
    List<String> names = new ArrayList<>(FORMAT_1_NAMES);
    names.addAll(FORMAT_2_NAMES);
    assertThat(fields()).extracting(Field::getName).containsExactlyInAnyOrderElementsOf(names);
    assertThat(HexFormat.of().formatHex(bytes(numbered(names)))).isEqualTo(FORMAT_2);
    assertThat(read(FORMAT_2)).usingRecursiveComparison().isEqualTo(numbered(names));
  }

  @Example
  void recordOfFormat1IsReadAndWrittenInFormat2() throws Exception {
    KeyRecord upgraded = read(FORMAT_1);
    assertThat(upgraded)
        .usingRecursiveComparison()
        .withEqualsForType(Double::equals, Double.class)
        .isEqualTo(numbered(FORMAT_1_NAMES));
    assertThat(upgraded.costNanos()).as("not known").isNaN();
    assertThat(upgraded.baselineError()).as("not known").isNaN();
    DataOutputSerializer copied = new DataOutputSerializer(64);
    SERIALIZER.copy(new DataInputDeserializer(HexFormat.of().parseHex(FORMAT_1)), copied);
    assertThat(HexFormat.of().formatHex(copied.getCopyOfBuffer())).startsWith("02");
    assertThat(SERIALIZER.deserialize(new DataInputDeserializer(copied.getCopyOfBuffer())))
        .usingRecursiveComparison()
        .withEqualsForType(Double::equals, Double.class)
        .isEqualTo(upgraded);
  }

  /** Errors from before the upgrade have no first round, and get none by later feedback. */
  @Example
  void upgradedRecordHasNoBaselineUntilItsNextUpdate() throws Exception {
    KeyRecord record = read(FORMAT_1);
    record.feedback(new QueryFeedback(Version.NONE, 3), 77);
    assertThat(record.baselineError()).isNaN();
    record.completeComputation(1);
    record.feedback(new QueryFeedback(Version.NONE, 3), 78);
    assertThat(record.baselineError()).isEqualTo(3);
  }

  @Example
  void recordIsSmall() throws Exception {
    int size = bytes(new KeyRecord()).length;
    assertThat(size).isEqualTo(FORMAT_2.length() / 2).isLessThan(BYTES_MAX);
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
    byte[] later = HexFormat.of().parseHex(FORMAT_2);
    later[0] = 3;
    assertThatThrownBy(() -> SERIALIZER.deserialize(new DataInputDeserializer(later)))
        .isInstanceOf(IOException.class)
        .hasMessageContaining("format 3");
  }
}
