package dev.freshet.operators.scheduling;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.within;

import java.util.ArrayList;
import java.util.List;
import net.jqwik.api.Example;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.DoubleRange;
import net.jqwik.api.constraints.IntRange;
import net.jqwik.api.constraints.LongRange;

/** The three budgets on their own. */
class ComputeBudgetProperties {

  private static final long SECOND = 1_000_000_000L;

  @Example
  void fractionOfAnUpdateCarriesOver() {
    EventTimeStepBudget budget = new EventTimeStepBudget(1.29, 100, 0);
    List<Integer> granted = new ArrayList<>();
    for (int i = 0; i < 8; i++) {
      int allowed = budget.beginStep();
      budget.spend(allowed);
      granted.add(allowed);
    }
    assertThat(granted).containsExactly(1, 1, 1, 2, 1, 1, 2, 1);
  }

  @Property
  void whatIsGrantedIsTheRateTimesTheSteps(
      @ForAll @DoubleRange(min = 0.01, max = 50) double perStep,
      @ForAll @IntRange(min = 1, max = 500) int steps) {
    EventTimeStepBudget budget = new EventTimeStepBudget(perStep, 100, 0);
    long granted = 0;
    for (int i = 0; i < steps; i++) {
      int allowed = budget.beginStep();
      budget.spend(allowed);
      granted += allowed;
    }
    assertThat((double) granted).isCloseTo(perStep * steps, within(1.0));
  }

  @Example
  void tenTimesATenthIsOne() {
    EventTimeStepBudget budget = new EventTimeStepBudget(0.1, 100, 0);
    int granted = 0;
    for (int i = 0; i < 10; i++) {
      granted += budget.beginStep();
      budget.spend(granted);
    }
    assertThat(granted).isEqualTo(1);
  }

  @Property
  void unusedBudgetDoesNotPileUp(
      @ForAll @DoubleRange(min = 0.01, max = 20) double perStep,
      @ForAll @IntRange(min = 1, max = 200) int idleSteps) {
    EventTimeStepBudget budget = new EventTimeStepBudget(perStep, 100, 0);
    for (int i = 0; i < idleSteps; i++) {
      budget.beginStep();
    }
    assertThat(budget.beginStep()).isLessThanOrEqualTo((int) (perStep + 1 + 1e-6));
  }

  @Property
  void skippingEqualsStepping(
      @ForAll @DoubleRange(min = 0.01, max = 20) double perStep,
      @ForAll @DoubleRange(min = 0, max = 30) double initial,
      @ForAll @IntRange(min = 0, max = 10) int spent,
      @ForAll @IntRange(min = 0, max = 3000) int steps) {
    EventTimeStepBudget stepping = new EventTimeStepBudget(perStep, 100, initial);
    EventTimeStepBudget skipping = new EventTimeStepBudget(perStep, 100, initial);
    for (EventTimeStepBudget budget : List.of(stepping, skipping)) {
      budget.spend(Math.min(spent, budget.beginStep()));
    }
    for (int i = 0; i < steps; i++) {
      stepping.beginStep();
      stepping.spend(0);
    }
    skipping.skip(steps);
    assertThat(skipping.credit()).isEqualTo(stepping.credit());
    assertThat(skipping.beginStep()).isEqualTo(stepping.beginStep());
  }

  @Example
  void initialUpdatesLastUntilUsed() {
    EventTimeStepBudget budget = new EventTimeStepBudget(1, 100, 10);
    assertThat(budget.beginStep()).isEqualTo(10);
    budget.spend(4);
    budget.skip(1_000);
    assertThat(budget.beginStep()).isEqualTo(6);
  }

  @Property
  void stepEndIsTheNextMultiple(
      @ForAll @LongRange(min = -1_000_000, max = 1_000_000) long timestamp,
      @ForAll @LongRange(min = 1, max = 10_000) long stepMs) {
    long end = new EventTimeStepBudget(1, stepMs, 0).stepEnd(timestamp);
    assertThat(end % stepMs).isZero();
    assertThat(end).isGreaterThanOrEqualTo(timestamp).isLessThan(timestamp + stepMs);
  }

  @Property
  void rateIsNeverExceededByMoreThanASecondsWorth(
      @ForAll @DoubleRange(min = 0.05, max = 500) double perSecond,
      @ForAll @IntRange(min = 1, max = 50) int maxBatch) {
    RateBudget budget = new RateBudget(perSecond);
    long start = -5 * SECOND; // System.nanoTime may be negative.
    long now = start;
    long spent = 0;
    for (int i = 0; i < 300; i++) {
      int permits = budget.permits(now);
      if (permits == 0) {
        long next = budget.nextPermitNanos(now);
        assertThat(next).isGreaterThan(now);
        // One nanosecond of rounding at most.
        assertThat(budget.permits(next + 1)).isPositive();
        now = next + 1;
        continue;
      }
      int keys = Math.min(permits, maxBatch);
      budget.spend(keys, 0, now);
      spent += keys;
      double allowed = Math.max(1, perSecond) + perSecond * (now - start) / SECOND;
      assertThat((double) spent).isLessThanOrEqualTo(allowed + 1e-3);
    }
  }

  @Property
  void burstIsWhatIsSavedUpAtMost(
      @ForAll @DoubleRange(min = 0.05, max = 50) double perSecond,
      @ForAll @DoubleRange(min = 0, max = 200) double burst) {
    RateBudget budget = new RateBudget(perSecond, burst);
    assertThat(budget.permits(0)).as("a start is no reason for a burst").isEqualTo(1);
    budget.spend(1, 0, 0);
    long idle = (long) (10 * SECOND * Math.max(1, burst) / perSecond);
    assertThat(budget.permits(idle)).isEqualTo((int) Math.max(1, burst));
    budget.spend(budget.permits(idle), 0, idle);
    assertThat(budget.permits(idle)).isZero();
  }

  @Example
  void rateIsReachedWhenThereIsWork() {
    RateBudget budget = new RateBudget(10);
    long now = 0;
    long spent = 0;
    while (now < 100 * SECOND) {
      int permits = budget.permits(now);
      budget.spend(permits, 0, now);
      spent += permits;
      now = Math.max(now + 1, budget.nextPermitNanos(now));
    }
    assertThat((double) spent).isCloseTo(1_000, within(2.0));
  }

  @Property
  void timeShareLeavesTheRest(@ForAll @DoubleRange(min = 0.01, max = 1) double share) {
    TimeShareBudget budget = new TimeShareBudget(share);
    long now = -3 * SECOND;
    long start = now;
    long computed = 0;
    for (int i = 0; i < 100; i++) {
      now = budget.nextPermitNanos(now);
      assertThat(budget.permits(now)).isPositive();
      long compute = 1_000_000L * (1 + i % 7);
      now += compute;
      computed += compute;
      budget.spend(1, compute, now);
    }
    now = budget.nextPermitNanos(now);
    assertThat((double) computed / (now - start)).isCloseTo(share, within(0.001));
  }

  @Example
  void theUseOfABudgetIsWhatWasSpentOfWhatWasGranted() {
    TimeShareBudget share = new TimeShareBudget(0.25);
    assertThat(share.granted(SECOND)).isZero();
    assertThat(share.permits(SECOND)).isPositive();
    share.spend(1, SECOND / 2, 2 * SECOND);
    assertThat(share.granted(9 * SECOND)).isCloseTo(2, within(1e-9));
    assertThat(share.spent()).isCloseTo(0.5, within(1e-9));

    RateBudget rate = new RateBudget(10);
    assertThat(rate.permits(SECOND)).isEqualTo(1);
    rate.spend(1, 0, SECOND);
    assertThat(rate.granted(3 * SECOND)).isCloseTo(21, within(1e-9));
    assertThat(rate.spent()).isEqualTo(1);

    EventTimeStepBudget steps = new EventTimeStepBudget(1.5, 100, 4);
    steps.spend(steps.beginStep());
    steps.skip(1_000);
    assertThat(steps.granted(SECOND)).isCloseTo(4 + 1_001 * 1.5, within(1e-6));
    assertThat(steps.spent()).isEqualTo(4);
  }

  @Example
  void badBudgetsAreRejected() {
    assertThatIllegalArgumentException().isThrownBy(() -> new TimeShareBudget(0));
    assertThatIllegalArgumentException().isThrownBy(() -> new TimeShareBudget(1.01));
    assertThatIllegalArgumentException().isThrownBy(() -> new TimeShareBudget(Double.NaN));
    assertThatIllegalArgumentException().isThrownBy(() -> new RateBudget(0));
    assertThatIllegalArgumentException().isThrownBy(() -> new EventTimeStepBudget(0, 1, 0));
    assertThatIllegalArgumentException().isThrownBy(() -> new EventTimeStepBudget(1, 0, 0));
    assertThatIllegalArgumentException().isThrownBy(() -> new EventTimeStepBudget(1, 1, -1));
  }

  @Example
  void settingsAreDividedAmongSubtasks() {
    assertThat(new BudgetSettings.Rate(10).forSubtask(4))
        .isInstanceOfSatisfying(
            RateBudget.class,
            rate -> {
              rate.spend(rate.permits(0), 0, 0);
              assertThat(rate.permits(2 * SECOND)).isEqualTo(2);
            });
    assertThat(new BudgetSettings.Rate(10, 100).forSubtask(4))
        .isInstanceOfSatisfying(
            RateBudget.class,
            rate -> {
              assertThat(rate.permits(0)).isEqualTo(1);
              assertThat(rate.permits(60 * SECOND)).isEqualTo(25);
            });
    assertThat(new BudgetSettings.EventTimeStep(8, 100, 40).forSubtask(4))
        .isInstanceOfSatisfying(
            EventTimeStepBudget.class,
            perStep -> {
              assertThat(perStep.beginStep()).isEqualTo(10);
              perStep.spend(10);
              assertThat(perStep.beginStep()).isEqualTo(2);
            });
  }
}
