package dev.freshet.operators.scheduling;

import dev.freshet.connectors.record.ValueKind;
import dev.freshet.operators.compute.ComputeRequestEncoder;
import java.util.List;

/** Settings of test tables: a small window, regret-proportional, one update a step of 100 ms. */
record TestSettings(
    ValueKind kind,
    WindowExtent window,
    int minPoints,
    SchedulingPolicy policy,
    boolean onDemand,
    BudgetSettings budget,
    long bundleTargetMs,
    int bundleMaxKeys,
    int windowBytesMax) {

  static final int ORIGIN = 7;
  static final double DEFAULT_REGRET = 1e-6;
  static final double MAX_REGRET = 1e12;
  static final long STEP_MS = 100;

  static TestSettings regretPerStep(double updates) {
    return new TestSettings(
        ValueKind.SCALAR,
        WindowExtent.ofPoints(4),
        1,
        regret(DEFAULT_REGRET, MAX_REGRET),
        false,
        perStep(updates),
        50,
        16,
        ComputeRequestEncoder.WINDOW_BYTES_MAX);
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
    return new TestSettings(
        newKind,
        window,
        minPoints,
        policy,
        onDemand,
        budget,
        bundleTargetMs,
        bundleMaxKeys,
        windowBytesMax);
  }

  TestSettings with(WindowExtent newWindow) {
    return new TestSettings(
        kind,
        newWindow,
        minPoints,
        policy,
        onDemand,
        budget,
        bundleTargetMs,
        bundleMaxKeys,
        windowBytesMax);
  }

  TestSettings with(SchedulingPolicy newPolicy) {
    return new TestSettings(
        kind,
        window,
        minPoints,
        newPolicy,
        onDemand,
        budget,
        bundleTargetMs,
        bundleMaxKeys,
        windowBytesMax);
  }

  TestSettings with(BudgetSettings newBudget) {
    return new TestSettings(
        kind,
        window,
        minPoints,
        policy,
        onDemand,
        newBudget,
        bundleTargetMs,
        bundleMaxKeys,
        windowBytesMax);
  }

  TestSettings computedOnDemand() {
    return new TestSettings(
        kind,
        window,
        minPoints,
        policy,
        true,
        budget,
        bundleTargetMs,
        bundleMaxKeys,
        windowBytesMax);
  }

  TestSettings windowBytesMax(int bytes) {
    return new TestSettings(
        kind, window, minPoints, policy, onDemand, budget, bundleTargetMs, bundleMaxKeys, bytes);
  }

  TestSettings minPoints(int points) {
    return new TestSettings(
        kind,
        window,
        points,
        policy,
        onDemand,
        budget,
        bundleTargetMs,
        bundleMaxKeys,
        windowBytesMax);
  }

  TestSettings bundleMaxKeys(int keys) {
    return new TestSettings(
        kind, window, minPoints, policy, onDemand, budget, bundleTargetMs, keys, windowBytesMax);
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
        bundleTargetMs,
        bundleMaxKeys,
        windowBytesMax);
  }
}
