package dev.freshet.connectors.store;

import dev.freshet.schemas.FeatureChange;

/**
 * A change whose write is not acknowledged yet.
 *
 * @param change the change, emitted once the store has it
 * @param write its write
 * @param segment what holds later watermarks back until then
 */
record PendingChange(FeatureChange change, StoreWrite write, WatermarkHold.Segment segment)
    implements PendingWrite {

  @Override
  public String key() {
    return change.getKey();
  }
}
