import java.io.FileInputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.Key;
import java.security.KeyStore;
import java.util.Base64;
import java.util.List;

/**
 * Runs many commands of keytool in one JVM, since each alone takes most of a second to start, and
 * one that keytool does not have: {@code -exportkey} writes a private key as PEM.
 *
 * <p>Commands are lines of the standard input, their arguments between tabs. A test runs it as a
 * source file; it needs {@code --add-exports java.base/sun.security.tools.keytool=ALL-UNNAMED}.
 */
final class Keytool {

  private Keytool() {}

  public static void main(String[] none) throws Exception {
    List<String> lines = new String(System.in.readAllBytes(), "UTF-8").lines().toList();
    for (String line : lines) {
      String[] arguments = line.split("\t");
      if (arguments[0].equals("-exportkey")) {
        exportKey(arguments[1], arguments[2], Path.of(arguments[3]));
      } else {
        // It ends the JVM with a code of 1 when a command fails.
        sun.security.tools.keytool.Main.main(arguments);
      }
    }
  }

  /** Of the store's entry "own". */
  private static void exportKey(String store, String password, Path file) throws Exception {
    KeyStore keys = KeyStore.getInstance("PKCS12");
    try (FileInputStream input = new FileInputStream(store)) {
      keys.load(input, password.toCharArray());
    }
    Key key = keys.getKey("own", password.toCharArray());
    String body = Base64.getMimeEncoder(64, new byte[] {'\n'}).encodeToString(key.getEncoded());
    Files.writeString(file, "-----BEGIN PRIVATE KEY-----\n" + body + "\n-----END PRIVATE KEY-----\n");
  }
}
