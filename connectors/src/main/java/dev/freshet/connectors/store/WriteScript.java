package dev.freshet.connectors.store;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;

/** The script that writes if newer, and the name that Redis knows it by. */
final class WriteScript {

  private static final String RESOURCE = "/write_if_newer.lua";

  /** The source. */
  static final String SOURCE = load();

  /** SHA-1 of the source, as {@code EVALSHA} takes it. */
  static final String DIGEST = digest(SOURCE);

  private WriteScript() {}

  private static String load() {
    try (InputStream in = WriteScript.class.getResourceAsStream(RESOURCE)) {
      if (in == null) {
        throw new IllegalStateException(
            RESOURCE + " is not in the jar; build it with 'make setup'");
      }
      return new String(in.readAllBytes(), UTF_8);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static String digest(String source) {
    try {
      return HexFormat.of()
          .formatHex(MessageDigest.getInstance("SHA-1").digest(source.getBytes(UTF_8)));
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("every Java platform has SHA-1", e);
    }
  }
}
