package dev.freshet.operators.scheduling;

import dev.freshet.connectors.record.Event;
import dev.freshet.connectors.record.Feedback;
import dev.freshet.connectors.record.Version;
import dev.freshet.operators.scheduling.MaintenanceHarness.Ending;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.Random;

/**
 * One input and many ways to deliver it. Event time is watermark order alone: whatever is not
 * behind the watermark may come in any order, more than once, with the watermark in any pieces.
 */
final class Replay {

  static final int KEYS = 6;
  static final int STEPS = 12;

  /** An event, or feedback where the event is null. */
  record Input(Event event, Feedback feedback) {
    long timestampMs() {
      return event != null ? event.timestampMs() : feedback.timestampMs();
    }
  }

  private Replay() {}

  static List<Event> events(Random random) {
    List<Event> events = new ArrayList<>();
    for (int key = 0; key < KEYS; key++) {
      long timestamp = random.nextInt(300);
      while (timestamp < STEPS * TestSettings.STEP_MS) {
        events.add(
            MaintenanceHarness.scalar("k" + key, timestamp, random.nextInt(2), (double) timestamp));
        // Gaps of many steps, and several events in one.
        timestamp += random.nextInt(4) == 0 ? random.nextInt(500) : 1 + random.nextInt(60);
      }
    }
    return events;
  }

  /** Some computations fail: which ones follows from the request alone. */
  static Ending ending(ComputeBatch.Request request) {
    return (request.key().hashCode() + request.eventTimeMs()) % 7 == 0 ? Ending.FAILED : Ending.OK;
  }

  /** Now and then someone waits for a key, whether it has something new or not. */
  private static Feedback demand(long stepEnd, Random random) {
    return Feedback.ofDemand("k" + random.nextInt(KEYS), stepEnd - random.nextInt(100));
  }

  /** Delivers in order of event time, a step at a time, and adds feedback on what was chosen. */
  static List<Feedback> record(MaintenanceHarness harness, List<Event> events, Random random)
      throws Exception {
    harness.function(Replay::ending);
    List<Event> inOrder = new ArrayList<>(events);
    inOrder.sort(Comparator.comparingLong(Event::timestampMs));
    List<Feedback> posted = new ArrayList<>();
    int next = 0;
    for (long end = TestSettings.STEP_MS; next < inOrder.size(); end += TestSettings.STEP_MS) {
      for (; next < inOrder.size() && inOrder.get(next).timestampMs() <= end; next++) {
        harness.event(inOrder.get(next));
      }
      for (ComputeBatch.Request request : harness.chosen()) {
        if (random.nextInt(3) == 0) {
          double error = random.nextInt(4) == 0 ? Double.NaN : Math.exp(random.nextGaussian());
          long timestamp = end - random.nextInt((int) TestSettings.STEP_MS);
          Version version =
              random.nextInt(9) == 0 ? new Version(1, TestSettings.ORIGIN) : request.version();
          Feedback feedback = new Feedback(request.key(), version, error, timestamp);
          posted.add(feedback);
          harness.feedback(feedback);
        }
      }
      // Queries of which most find a value by now.
      Feedback onMissing =
          new Feedback("k" + random.nextInt(KEYS), Version.NONE, random.nextDouble(), end - 10);
      for (Feedback each :
          List.of(onMissing, demand(end, random), demand(end, random), demand(end, random))) {
        posted.add(each);
        harness.feedback(each);
      }
      harness.watermark(end);
    }
    harness.watermark(Long.MAX_VALUE);
    return posted;
  }

  /**
   * All input in an order in which nothing comes behind its watermark: each input gets a place some
   * way ahead of its time.
   *
   * @param ahead how far inputs may run ahead of the watermark, milliseconds
   */
  static List<Input> shuffled(
      List<Event> events, List<Feedback> feedback, long ahead, Random random) {
    record Placed(long place, Input input) {}
    List<Placed> placed = new ArrayList<>();
    for (Event event : events) {
      for (int copies = random.nextInt(4) == 0 ? 2 : 1; copies > 0; copies--) {
        placed.add(
            new Placed(event.timestampMs() - random.nextLong(ahead + 1), new Input(event, null)));
      }
    }
    for (Feedback each : feedback) {
      placed.add(
          new Placed(each.timestampMs() - random.nextLong(ahead + 1), new Input(null, each)));
    }
    Collections.shuffle(placed, random);
    placed.sort(Comparator.comparingLong(Placed::place));
    return placed.stream().map(Placed::input).toList();
  }

  /**
   * Delivers with random watermarks, each below every input that is still to come.
   *
   * @param from index of the first input to deliver
   * @param to index after the last; the watermark moves on behind it only if it is the last of all
   */
  static void deliver(
      MaintenanceHarness harness, List<Input> inputs, int from, int to, Random random)
      throws Exception {
    harness.function(Replay::ending);
    long[] smallestToCome = new long[inputs.size() + 1];
    smallestToCome[inputs.size()] = Long.MAX_VALUE;
    for (int i = inputs.size() - 1; i >= 0; i--) {
      smallestToCome[i] = Math.min(smallestToCome[i + 1], inputs.get(i).timestampMs());
    }
    for (int i = from; i < to; i++) {
      Input input = inputs.get(i);
      if (input.event() != null) {
        harness.event(input.event());
      } else {
        harness.feedback(input.feedback());
      }
      if (i + 1 < inputs.size() && random.nextInt(5) == 0) {
        harness.watermark(smallestToCome[i + 1] - 1 - random.nextInt(3));
      }
    }
    if (to == inputs.size()) {
      harness.watermark(Long.MAX_VALUE);
    }
  }
}
