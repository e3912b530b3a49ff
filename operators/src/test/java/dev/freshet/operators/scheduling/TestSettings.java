package dev.freshet.operators.scheduling;

import dev.freshet.connectors.record.ValueKind;
import dev.freshet.operators.compute.ComputeRequestEncoder;
import java.util.List;
import java.util.function.Consumer;

/** Settings of test tables: a small window, regret-proportional, one update a step of 100 ms. */
final class TestSettings {

  static final int ORIGIN = 7;
  static final double DEFAULT_REGRET = 1e-6;
  static final double MAX_REGRET = 1e12;
  static final long STEP_MS = 100;
  private static final long BUNDLE_TARGET_MS = 50;

  private ValueKind kind = ValueKind.SCALAR;
  private WindowExtent window = WindowExtent.ofPoints(4);
  private int minPoints = 1;
  private SchedulingPolicy policy = regret(DEFAULT_REGRET, MAX_REGRET);
  private boolean onDemand = false;
  private BudgetSettings budget = perStep(1);
  private int bundleMaxKeys = 16;
  private int windowBytesMax = ComputeRequestEncoder.WINDOW_BYTES_MAX;

  private TestSettings() {}

  static TestSettings regretPerStep(double updates) {
    return new TestSettings().with(perStep(updates));
  }

  /** Regret-proportional with this regret of a pending event and this cap. */
  static SchedulingPolicy regret(double perPending, double max) {
    return new RegretProportionalPolicy(new RegretSettings(perPending, max));
  }

  /** One of each policy, with a regret of a pending event that makes a difference. */
  static List<SchedulingPolicy> everyPolicy() {
    return SchedulingPolicies.NAMES.stream()
        .map(name -> SchedulingPolicies.create(name, new RegretSettings(0.01, MAX_REGRET, 0.5), 5))
        .toList();
  }

  static BudgetSettings perStep(double updates) {
    return new BudgetSettings.EventTimeStep(updates, STEP_MS, 0);
  }

  TestSettings with(ValueKind newKind) {
    return changed(copy -> copy.kind = newKind);
  }

  TestSettings with(WindowExtent newWindow) {
    return changed(copy -> copy.window = newWindow);
  }

  TestSettings with(SchedulingPolicy newPolicy) {
    return changed(copy -> copy.policy = newPolicy);
  }

  TestSettings with(BudgetSettings newBudget) {
    return changed(copy -> copy.budget = newBudget);
  }

  TestSettings computedOnDemand() {
    return changed(copy -> copy.onDemand = true);
  }

  TestSettings windowBytesMax(int bytes) {
    return changed(copy -> copy.windowBytesMax = bytes);
  }

  TestSettings minPoints(int points) {
    return changed(copy -> copy.minPoints = points);
  }

  TestSettings bundleMaxKeys(int keys) {
    return changed(copy -> copy.bundleMaxKeys = keys);
  }

  private TestSettings changed(Consumer<TestSettings> change) {
    TestSettings copy = new TestSettings();
    copy.kind = kind;
    copy.window = window;
    copy.minPoints = minPoints;
    copy.policy = policy;
    copy.onDemand = onDemand;
    copy.budget = budget;
    copy.bundleMaxKeys = bundleMaxKeys;
    copy.windowBytesMax = windowBytesMax;
    change.accept(copy);
    return copy;
  }

  SchedulingPolicy policy() {
    return policy;
  }

  MaintenanceSettings build() {
    return new MaintenanceSettings(
        "test_table",
        ORIGIN,
        kind,
        window,
        minPoints,
        policy,
        onDemand,
        budget,
        BUNDLE_TARGET_MS,
        bundleMaxKeys,
        windowBytesMax);
  }

  /** A property's failure shows it. */
  @Override
  public String toString() {
    return build().toString();
  }
}
