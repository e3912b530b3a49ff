package dev.freshet.operators.scheduling;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.TreeSet;
import net.jqwik.api.Example;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;
import net.jqwik.api.constraints.Size;

/** Which steps are decided, and that skipping the idle ones changes nothing that is spent. */
class EventTimeStepsProperties {

  private static final long STEP = 10;

  @Property
  void decidesTheSameHoweverTheWatermarkMoves(
      @ForAll @Size(min = 1, max = 20) List<@IntRange(min = 1, max = 400) Integer> inputs,
      @ForAll @Size(max = 20) List<@IntRange(min = 0, max = 450) Integer> watermarks)
      throws Exception {
    List<String> atOnce = decide(inputs, List.of(450));
    List<Integer> split = new ArrayList<>(new TreeSet<>(watermarks));
    split.add(450);
    assertThat(decide(inputs, split)).isEqualTo(atOnce);
  }

  /** Each input is one pending key; each step spends what it may. */
  private static List<String> decide(List<Integer> inputs, List<Integer> watermarks)
      throws Exception {
    EventTimeStepBudget budget = new EventTimeStepBudget(0.7, STEP, 0);
    EventTimeSteps steps = new EventTimeSteps(budget);
    TreeSet<Integer> early = new TreeSet<>(inputs);
    early.forEach(input -> steps.expect(steps.stepEnd(input)));
    List<String> log = new ArrayList<>();
    int[] pending = new int[1];
    for (int watermark : watermarks) {
      steps.advance(
          watermark,
          () -> pending[0] == 0,
          end -> {
            assertThat(end).isLessThanOrEqualTo(watermark);
            while (!early.isEmpty() && early.first() <= end) {
              early.pollFirst();
              pending[0]++;
            }
            int chosen = Math.min(budget.beginStep(), pending[0]);
            pending[0] -= chosen;
            budget.spend(chosen);
            if (chosen > 0) {
              log.add(end + ":" + chosen);
            }
          });
    }
    log.add("credit " + budget.credit() + " after " + steps.lastDecided());
    return log;
  }

  @Example
  void nothingIsDecidedBeforeTheFirstInput() throws Exception {
    EventTimeSteps steps = new EventTimeSteps(new EventTimeStepBudget(1, STEP, 0));
    List<Long> decided = new ArrayList<>();
    steps.advance(1_000, () -> true, decided::add);
    steps.advance(Long.MAX_VALUE, () -> true, decided::add);
    assertThat(decided).isEmpty();
    assertThat(steps.lastDecided()).isEqualTo(KeyRecord.NO_TIME);
  }

  @Example
  void stepsBeginWithTheEarliestInput() throws Exception {
    EventTimeSteps steps = new EventTimeSteps(new EventTimeStepBudget(1, STEP, 0));
    List<Long> decided = new ArrayList<>();
    steps.expect(30);
    steps.advance(15, () -> true, decided::add);
    steps.expect(20);
    steps.advance(30, () -> true, decided::add);
    assertThat(decided).containsExactly(20L, 30L);
    assertThat(steps.isDecided(30)).isTrue();
    assertThat(steps.isDecided(40)).isFalse();
  }

  @Example
  void endOfInputDecidesNoStepAfterTheLastInput() throws Exception {
    EventTimeSteps steps = new EventTimeSteps(new EventTimeStepBudget(1, STEP, 0));
    List<Long> decided = new ArrayList<>();
    steps.expect(10);
    steps.expect(30);
    steps.advance(Long.MAX_VALUE, () -> false, decided::add);
    assertThat(decided).containsExactly(10L, 20L, 30L);
    assertThat(steps.lastDecided()).isEqualTo(30);
  }

  @Example
  void restoredProgressDecidesNoStepTwiceEvenWithLongerSteps() throws Exception {
    EventTimeSteps steps = new EventTimeSteps(new EventTimeStepBudget(1, 25, 0));
    steps.restore(List.of(new StepProgress(0, 1, 30, 0.5)), 0, 1);
    List<Long> decided = new ArrayList<>();
    steps.expect(75);
    steps.advance(80, () -> false, decided::add);
    assertThat(decided).containsExactly(75L);
  }
}
