package dev.freshet.connectors.chunk;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.HexFormat;
import org.apache.avro.Schema;
import org.apache.avro.SchemaNormalization;

/** What Avro's single-object encoding puts in front of a record: {@code C3 01}, fingerprint. */
final class SchemaHeader {

  static final int BYTES = 10;

  private final byte[] header;

  SchemaHeader(Schema schema) {
    header =
        ByteBuffer.allocate(BYTES)
            .order(ByteOrder.LITTLE_ENDIAN)
            .putShort((short) 0x01C3)
            .putLong(SchemaNormalization.parsingFingerprint64(schema))
            .array();
  }

  boolean startsOf(byte[] object) {
    return object.length >= BYTES && Arrays.equals(object, 0, BYTES, header, 0, BYTES);
  }

  void write(AvroOutput out) {
    out.writeFixed(header, 0, BYTES);
  }

  @Override
  public String toString() {
    return HexFormat.of().formatHex(header);
  }
}
