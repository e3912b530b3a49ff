package dev.freshet.connectors.store;

import dev.freshet.schemas.DeadLetter;
import dev.freshet.schemas.FeatureChange;
import dev.freshet.schemas.Progress;
import org.apache.flink.streaming.api.datastream.DataStream;

/**
 * What comes out of the online store's writer.
 *
 * @param changes changes that the store has acknowledged
 * @param progress event time up to which the store has everything
 * @param deadLetters changes that cannot be stored
 */
public record Written(
    DataStream<FeatureChange> changes,
    DataStream<Progress> progress,
    DataStream<DeadLetter> deadLetters) {}
