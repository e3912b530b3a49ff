package dev.freshet.connectors.secret;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.IOException;
import java.net.URLEncoder;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Secrets by reference, as {@code freshet/secrets.py} has them: <code>${file:/run/secrets/x}</code>
 * stands for what is in a file, <code>${env:NAME}</code> for an environment variable. A job's graph
 * has the reference; the task that connects resolves it.
 */
public final class Secrets {

  private static final Pattern REFERENCE = Pattern.compile("\\$\\{(file|env):([^}]*)}");

  /** Of one secret; keys and certificates are smaller, and what is larger is the wrong file. */
  private static final int MAX_BYTES = 1 << 16;

  private Secrets() {}

  /**
   * The URL with its references replaced by their secrets, percent-encoded.
   *
   * @throws SecretException if a reference leads to no secret
   */
  public static String resolveUrl(String url) {
    return REFERENCE
        .matcher(url)
        .replaceAll(
            match ->
                Matcher.quoteReplacement(
                    URLEncoder.encode(read(match.group(1), match.group(2)), UTF_8)
                        .replace("+", "%20")));
  }

  /**
   * The secret that a reference stands for.
   *
   * @param kind {@code file} or {@code env}
   * @param name the file's path, or the variable's name
   * @throws SecretException if it leads to no secret; the message has nothing of what is there
   */
  static String read(String kind, String name) {
    return kind.equals("file") ? fromFile(name) : fromEnvironment(name);
  }

  private static String fromEnvironment(String name) {
    String value = System.getenv(name);
    if (value == null || value.isEmpty()) {
      throw new SecretException(
          "the environment variable "
              + name
              + (value == null ? " is not set" : " is empty")
              + "; set it to the secret on the JobManager and every TaskManager");
    }
    return value;
  }

  private static String fromFile(String name) {
    String text = withoutLineBreak(contents(Path.of(name)));
    if (text.isEmpty()) {
      throw new SecretException("the file " + name + " is empty; write the secret into it");
    }
    return text;
  }

  private static String contents(Path path) {
    try {
      if (!Files.isRegularFile(path) || Files.size(path) > MAX_BYTES) {
        throw new SecretException(
            path
                + " is no file of at most "
                + MAX_BYTES
                + " bytes; mount the secret there on the JobManager and every TaskManager");
      }
      return UTF_8.newDecoder().decode(ByteBuffer.wrap(Files.readAllBytes(path))).toString();
    } catch (CharacterCodingException e) {
      throw new SecretException(
          "the file " + path + " is not UTF-8 text; store the secret as text");
    } catch (IOException e) {
      throw new SecretException(
          "the file " + path + " cannot be read (" + e + "); make it readable by Flink's user");
    }
  }

  /** An editor's or echo's line break is not the secret's. */
  private static String withoutLineBreak(String text) {
    String line = text.endsWith("\n") ? text.substring(0, text.length() - 1) : text;
    return line.endsWith("\r") ? line.substring(0, line.length() - 1) : line;
  }
}
