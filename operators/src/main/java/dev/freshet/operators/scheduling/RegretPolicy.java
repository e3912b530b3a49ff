package dev.freshet.operators.scheduling;

import java.util.EnumSet;
import java.util.Set;

/** A policy that scores by the errors that models fed back. */
interface RegretPolicy extends SchedulingPolicy {

  /** Default regret, cap, and the regret of a missing value. */
  RegretSettings settings();

  /** Score of a key that does not come first for lack of a value; the cap is applied to it. */
  double score(KeyRecord record);

  @Override
  default Set<Need> needs() {
    return EnumSet.of(Need.LABELS);
  }

  @Override
  default double priority(KeyRecord record) {
    RegretSettings settings = settings();
    return settings.comesFirst(record) ? settings.max() : Math.min(settings.max(), score(record));
  }
}
