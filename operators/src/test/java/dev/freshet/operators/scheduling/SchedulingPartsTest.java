package dev.freshet.operators.scheduling;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.freshet.connectors.record.Feedback;
import dev.freshet.connectors.record.Version;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HexFormat;
import java.util.List;
import java.util.Random;
import net.jqwik.api.Example;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;
import org.apache.flink.core.memory.DataInputDeserializer;
import org.apache.flink.core.memory.DataOutputSerializer;

/** Clock, backoff, bundles, progress and the order of early input. */
class SchedulingPartsTest {

  @Property
  void versionsIncreaseWithinAKeyGroupWhateverTheClockDoes(
      @ForAll List<@IntRange(min = 0, max = 1_000) Integer> physical,
      @ForAll @IntRange(min = 0, max = 1_000) int observed) {
    VersionClock clock = new VersionClock(4);
    clock.observe(1, observed);
    long last = observed;
    for (int micros : physical) {
      long next = clock.next(1, micros);
      assertThat(next).isGreaterThan(last).isGreaterThanOrEqualTo(micros);
      last = next;
    }
  }

  @Example
  void keyGroupsHaveTheirOwnHands() {
    VersionClock clock = new VersionClock(2);
    clock.observe(0, 500);
    clock.observe(0, 400);
    assertThat(clock.next(0, 100)).isEqualTo(501);
    assertThat(clock.next(1, 100)).isEqualTo(100);
  }

  @Example
  void backoffDoublesUpToItsLimit() {
    Backoff steps = Backoff.inSteps(100);
    assertThat(List.of(steps.delayMs(0), steps.delayMs(1), steps.delayMs(2), steps.delayMs(3)))
        .containsExactly(100L, 200L, 400L, 800L);
    assertThat(steps.delayMs(6)).isEqualTo(6_400);
    assertThat(steps.delayMs(7)).isEqualTo(6_400);
    assertThat(steps.delayMs(Integer.MAX_VALUE)).isEqualTo(6_400);
    Backoff wall = Backoff.onWallClock();
    assertThat(wall.delayMs(0)).isEqualTo(1_000);
    assertThat(wall.delayMs(100)).isEqualTo(300_000);
  }

  @Example
  void bundlesAimForTheirTarget() {
    BundleSizer sizer = new BundleSizer(50, 256);
    assertThat(sizer.keys()).as("nothing measured").isEqualTo(1);
    sizer.measured(1_000_000);
    assertThat(sizer.keys()).isEqualTo(50);
    sizer.measured(0);
    assertThat(sizer.keys()).isGreaterThan(50);
    for (int i = 0; i < 100; i++) {
      sizer.measured(0);
    }
    assertThat(sizer.keys()).isEqualTo(256);
    for (int i = 0; i < 100; i++) {
      sizer.measured(200_000_000);
    }
    assertThat(sizer.keys()).isEqualTo(1);
  }

  @Property
  void sumOfErrorsDoesNotDependOnArrival(@ForAll long seed) {
    Random random = new Random(seed);
    List<EarlyInput> inputs = new ArrayList<>();
    for (int i = 0; i < 20; i++) {
      Version version = new Version(random.nextInt(2), random.nextInt(2));
      double error = random.nextInt(5) == 0 ? Double.NaN : Math.exp(30 * random.nextGaussian());
      inputs.add(
          random.nextBoolean()
              ? EarlyInput.ofEvent(random.nextInt(3))
              : EarlyInput.ofFeedback(new Feedback("k", version, error, random.nextInt(3))));
    }
    double expected = sumInOrder(inputs);
    Collections.shuffle(inputs, random);
    assertThat(sumInOrder(inputs)).isEqualTo(expected);
  }

  private static double sumInOrder(List<EarlyInput> inputs) {
    KeyRecord record = new KeyRecord();
    inputs.stream()
        .sorted(EarlyInput.ORDER)
        .filter(input -> input.kind() == EarlyInput.Kind.FEEDBACK)
        .forEach(input -> record.feedback(input.feedback(), 0));
    return record.regret();
  }

  @Example
  void earlyInputSurvivesItsSerializer() throws Exception {
    for (EarlyInput input :
        List.of(
            EarlyInput.ofEvent(-5),
            EarlyInput.ofDemand(9),
            EarlyInput.ofFeedback(7, new QueryFeedback(new Version(Long.MAX_VALUE, 65_535), 1.5)),
            EarlyInput.ofFeedback(7, new QueryFeedback(Version.NONE, Double.NaN)))) {
      DataOutputSerializer out = new DataOutputSerializer(64);
      new EarlyInput.Serializer().serialize(input, out);
      assertThat(earlyInput(out.getCopyOfBuffer())).isEqualTo(input);
    }
  }

  /** These bytes are in users' savepoints. */
  @Example
  void earlyInputOfTheFirstFormatIsRead() throws Exception {
    String time = "0000000000000007";
    assertThat(earlyInput(HexFormat.of().parseHex(time + "01"))).isEqualTo(EarlyInput.ofEvent(7));
    String feedback = time + "00" + "0000000000000005" + "0009" + "3ff8000000000000";
    assertThat(earlyInput(HexFormat.of().parseHex(feedback)))
        .isEqualTo(EarlyInput.ofFeedback(7, new QueryFeedback(new Version(5, 9), 1.5)));
    assertThatThrownBy(() -> earlyInput(HexFormat.of().parseHex(time + "09")))
        .hasMessageContaining("kind 9");
  }

  @Example
  void eventsOfAStepCountBeforeItsFeedbackAndDemands() {
    EarlyInput event = EarlyInput.ofEvent(9);
    EarlyInput feedback = EarlyInput.ofFeedback(5, new QueryFeedback(Version.NONE, 1));
    assertThat(EarlyInput.ORDER.compare(event, feedback)).isNegative();
    assertThat(EarlyInput.ORDER.compare(event, EarlyInput.ofDemand(5))).isNegative();
    assertThat(EarlyInput.ORDER.compare(event, EarlyInput.ofEvent(8))).isPositive();
    assertThat(EarlyInput.ORDER.compare(event, EarlyInput.ofEvent(9))).isZero();
  }

  private static EarlyInput earlyInput(byte[] bytes) throws IOException {
    return new EarlyInput.Serializer().deserialize(new DataInputDeserializer(bytes));
  }

  @Example
  void progressIsCarriedOrDividedAnew() throws Exception {
    StepProgress first = new StepProgress(0, 2, 300, 1.5);
    StepProgress second = new StepProgress(1, 2, 200, 0.5);
    List<StepProgress> all = List.of(first, second);
    assertThat(StepProgress.restore(all, 1, 2)).isEqualTo(second);
    assertThat(StepProgress.restore(all, 3, 4)).isEqualTo(new StepProgress(3, 4, 300, 0.5));
    assertThat(StepProgress.restore(all, 0, 1)).isEqualTo(new StepProgress(0, 1, 300, 2));
    DataOutputSerializer out = new DataOutputSerializer(64);
    new StepProgress.Serializer().serialize(first, out);
    assertThat(
            new StepProgress.Serializer()
                .deserialize(new DataInputDeserializer(out.getCopyOfBuffer())))
        .isEqualTo(first);
  }
}
