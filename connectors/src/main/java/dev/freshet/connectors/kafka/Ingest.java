package dev.freshet.connectors.kafka;

import dev.freshet.schemas.DeadLetter;
import org.apache.flink.streaming.api.datastream.DataStream;

/**
 * One ingested topic.
 *
 * @param records what could be parsed, with event-time watermarks
 * @param deadLetters what could not
 */
public record Ingest<T>(DataStream<T> records, DataStream<DeadLetter> deadLetters) {}
