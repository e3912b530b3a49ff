package dev.freshet.connectors.format;

import java.io.IOException;
import java.nio.ByteBuffer;
import org.apache.avro.AvroRuntimeException;
import org.apache.avro.Schema;
import org.apache.avro.SchemaNormalization;
import org.apache.avro.message.BinaryMessageDecoder;
import org.apache.avro.message.BinaryMessageEncoder;
import org.apache.avro.message.MissingSchemaException;
import org.apache.avro.specific.SpecificData;
import org.apache.avro.specific.SpecificRecordBase;

/**
 * Avro's single-object encoding of one record type: {@code C3 01}, the CRC-64-AVRO fingerprint of
 * the writer's schema, little-endian, then the record. Thread-safe.
 */
public final class SingleObjectCodec<T extends SpecificRecordBase> {

  private final Class<T> type;
  private final BinaryMessageEncoder<T> encoder;
  private final BinaryMessageDecoder<T> decoder;

  private SingleObjectCodec(Class<T> type) {
    this.type = type;
    SpecificData data = SpecificData.getForClass(type);
    Schema schema = data.getSchema(type);
    encoder = new BinaryMessageEncoder<>(data, schema);
    decoder = new BinaryMessageDecoder<>(data, schema);
    SchemaHistory.of(schema).forEach(decoder::addSchema);
  }

  /** The codec of a generated record class; it reads what any release wrote. */
  public static <T extends SpecificRecordBase> SingleObjectCodec<T> of(Class<T> type) {
    return new SingleObjectCodec<>(type);
  }

  /** Lets {@link #decode} read what this version of the schema wrote, which no release has. */
  public SingleObjectCodec<T> alsoReading(Schema writerSchema) {
    decoder.addSchema(writerSchema);
    return this;
  }

  /** Encodes a record. */
  public byte[] encode(T value) {
    try {
      ByteBuffer encoded = encoder.encode(value);
      byte[] bytes = new byte[encoded.remaining()];
      encoded.get(bytes);
      return bytes;
    } catch (IOException e) {
      // The encoder writes to memory only.
      throw new IllegalStateException("cannot encode a " + type.getSimpleName(), e);
    }
  }

  /**
   * Decodes a record.
   *
   * @throws IOException if the bytes are not in single-object encoding, are cut short, or were
   *     written with a schema that is not known here
   */
  public T decode(byte[] bytes) throws IOException {
    try {
      return decoder.decode(bytes);
    } catch (MissingSchemaException e) {
      throw new IOException(
          "a "
              + type.getSimpleName()
              + " was written with a schema that is not known here ("
              + e.getMessage()
              + "; known: "
              + Long.toHexString(
                  SchemaNormalization.parsingFingerprint64(SpecificData.get().getSchema(type)))
              + "); upgrade this reader first, or give it that schema",
          e);
    } catch (AvroRuntimeException | IndexOutOfBoundsException | IOException e) {
      throw new IOException(
          "not a "
              + type.getSimpleName()
              + " in Avro's single-object encoding ("
              + e.getMessage()
              + "); check that the topic is the right one",
          e);
    }
  }
}
