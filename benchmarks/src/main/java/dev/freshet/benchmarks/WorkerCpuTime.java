package dev.freshet.benchmarks;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadInfo;
import java.lang.management.ThreadMXBean;
import java.util.Collection;
import java.util.List;
import org.openjdk.jmh.infra.BenchmarkParams;
import org.openjdk.jmh.infra.IterationParams;
import org.openjdk.jmh.profile.InternalProfiler;
import org.openjdk.jmh.results.AggregationPolicy;
import org.openjdk.jmh.results.IterationResult;
import org.openjdk.jmh.results.Result;
import org.openjdk.jmh.results.ScalarResult;

/**
 * Adds to a benchmark's score what an operation takes of the CPU, "cpu" in nanoseconds: on a
 * machine that is busy with other work, a thread that waits for its turn is not charged for it.
 */
public final class WorkerCpuTime implements InternalProfiler {

  private static final String WORKER = "jmh-worker";

  private final ThreadMXBean threads = ManagementFactory.getThreadMXBean();
  private long before;

  @Override
  public String getDescription() {
    return "CPU time of an operation";
  }

  @Override
  public void beforeIteration(BenchmarkParams benchmark, IterationParams iteration) {
    before = workersNanos();
  }

  @Override
  public Collection<? extends Result<?>> afterIteration(
      BenchmarkParams benchmark, IterationParams iteration, IterationResult result) {
    double nanos = workersNanos() - before;
    long operations = result.getMetadata().getAllOps();
    return List.of(new ScalarResult("cpu", nanos / operations, "ns/op", AggregationPolicy.AVG));
  }

  private long workersNanos() {
    long nanos = 0;
    for (long id : threads.getAllThreadIds()) {
      ThreadInfo thread = threads.getThreadInfo(id);
      if (thread != null && thread.getThreadName().contains(WORKER)) {
        nanos += Math.max(0, threads.getThreadCpuTime(id));
      }
    }
    return nanos;
  }
}
