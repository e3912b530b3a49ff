package dev.freshet.connectors.store;

/**
 * What became of one attempt to write a batch.
 *
 * @param codes one {@link WriteCode} a write, in the batch's order
 * @param failure why some are {@link WriteCode#UNANSWERED}: the first cause; null if none is
 */
record WriteOutcome(int[] codes, Throwable failure) {}
