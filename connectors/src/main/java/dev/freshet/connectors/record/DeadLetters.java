package dev.freshet.connectors.record;

import dev.freshet.schemas.DeadLetter;
import java.nio.ByteBuffer;

/** Limits of a dead letter, so that writing one never fails for its own size. */
public final class DeadLetters {

  /**
   * Longest original value that is kept whole; well under Kafka's default record limit of 1 MiB.
   */
  public static final int MAX_VALUE_BYTES = 512 * 1024;

  /** Longest original key that is kept whole. */
  public static final int MAX_KEY_BYTES = 16 * 1024;

  /** Longest reason or stack, in characters. */
  public static final int MAX_TEXT_CHARS = 32 * 1024;

  private DeadLetters() {}

  /**
   * The dead letter, with whatever is over a limit cut and the reason saying so. A letter within
   * the limits is returned as it is.
   */
  public static DeadLetter fit(DeadLetter letter) {
    boolean valueFits = fits(letter.getValue(), MAX_VALUE_BYTES);
    boolean keyFits = fits(letter.getKey(), MAX_KEY_BYTES);
    boolean textFits = fits(letter.getReason()) && fits(letter.getStack());
    if (valueFits && keyFits && textFits) {
      return letter;
    }
    StringBuilder reason = new StringBuilder(cut(letter.getReason()));
    if (!valueFits) {
      reason.append(kept("value", MAX_VALUE_BYTES, letter.getValue()));
    }
    if (!keyFits) {
      reason.append(kept("key", MAX_KEY_BYTES, letter.getKey()));
    }
    return DeadLetter.newBuilder(letter)
        .setReason(reason.toString())
        .setKey(cut(letter.getKey(), MAX_KEY_BYTES))
        .setValue(cut(letter.getValue(), MAX_VALUE_BYTES))
        .setStack(letter.getStack() == null ? null : cut(letter.getStack()))
        .build();
  }

  private static boolean fits(ByteBuffer bytes, int limit) {
    return bytes == null || bytes.remaining() <= limit;
  }

  private static boolean fits(String text) {
    return text == null || text.length() <= MAX_TEXT_CHARS;
  }

  private static String kept(String what, int limit, ByteBuffer original) {
    return "; here only the first "
        + limit
        + " of its "
        + what
        + "'s "
        + original.remaining()
        + " bytes";
  }

  private static ByteBuffer cut(ByteBuffer bytes, int limit) {
    if (fits(bytes, limit)) {
      return bytes;
    }
    return bytes.slice(bytes.position(), limit);
  }

  private static String cut(String text) {
    return fits(text) ? text : text.substring(0, MAX_TEXT_CHARS);
  }
}
