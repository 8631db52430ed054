import { Counter } from "prom-client";
import { describe, expect, it } from "vitest";
import { MetricsPage } from "../../src/observe/metrics-page.js";
import type { MeteredModel } from "../../src/observe/model-families.js";
import type { ExecutionTimes } from "../../src/observe/statistics.js";
import { ModelStatistics } from "../../src/observe/statistics.js";
import { reportStatistics } from "../../src/service/model-reports.js";

const times: ExecutionTimes = { start: 10, inputEnd: 11, inferEnd: 14, end: 14.5 };

describe("model statistics", () => {
  it("count rows and batch times of a successful request", () => {
    const statistics = new ModelStatistics();
    statistics.recordSuccess(3, 4, times);
    expect(statistics.inferenceCount).toBe(3);
    expect(statistics.success).toEqual({ count: 1, ns: 10_500_000 });
    expect(statistics.queue).toEqual({ count: 1, ns: 6_000_000 });
    expect(statistics.computeInput).toEqual({ count: 1, ns: 1_000_000 });
    expect(statistics.computeInfer).toEqual({ count: 1, ns: 3_000_000 });
    expect(statistics.computeOutput).toEqual({ count: 1, ns: 500_000 });
  });

  it("count only the failure of a failed request", () => {
    const statistics = new ModelStatistics();
    statistics.recordFailure("BACKEND", 2);
    expect(statistics.fail).toEqual({ count: 1, ns: 2_000_000 });
    expect(statistics.failures).toEqual({ REJECTED: 0, CANCELED: 0, BACKEND: 1, OTHER: 0 });
    expect([statistics.inferenceCount, statistics.queue.count, statistics.success.count]).toEqual([0, 0, 0]);
  });

  it("group executions by batch size", () => {
    const statistics = new ModelStatistics();
    statistics.recordExecution(4, times, 1234.9);
    statistics.recordExecution(4, times, 1300);
    statistics.recordExecution(2, times, 1400);
    expect([statistics.executionCount, statistics.lastInference]).toEqual([3, 1400]);
    const report = reportStatistics("m", 7, statistics);
    expect(report.batchStats.map(({ batchSize, computeInfer }) => [batchSize, computeInfer])).toEqual([
      [2, { count: 1, ns: 3_000_000 }],
      [4, { count: 2, ns: 6_000_000 }],
    ]);
  });

  it("are never negative, even when the clock goes back", () => {
    const statistics = new ModelStatistics();
    statistics.recordSuccess(1, 20, times);
    expect([statistics.success.ns, statistics.queue.ns]).toEqual([0, 0]);
  });

  it("are reported as a copy", () => {
    const statistics = new ModelStatistics();
    const report = reportStatistics("m", 1, statistics);
    statistics.recordSuccess(1, 0, times);
    statistics.recordExecution(1, times, 1);
    expect([report.inferenceStats.success.count, report.batchStats, report.version]).toEqual([0, [], "1"]);
  });
});

function metricsPage(models: readonly MeteredModel[]): Promise<string> {
  return new MetricsPage({ models: () => models, allowCpuMetrics: false }).write();
}

describe("the metrics page", () => {
  it("has a series for each model, in whole microseconds, with all failure reasons from the start", async () => {
    const statistics = new ModelStatistics();
    statistics.recordSuccess(2, 0, { start: 0.0015, inputEnd: 0.0015, inferEnd: 0.0019, end: 0.0019 });
    statistics.pendingCount = 5;
    const page = await metricsPage([
      { labels: { model: "m", version: "1" }, cached: false, inflightCount: 0, statistics },
    ]);
    const lines = page.split("\n").filter((line) => !line.startsWith("#"));
    expect(lines).toEqual(
      expect.arrayContaining([
        'nv_inference_request_success{model="m",version="1"} 1',
        'nv_inference_count{model="m",version="1"} 2',
        'nv_inference_exec_count{model="m",version="1"} 0',
        'nv_inference_request_duration_us{model="m",version="1"} 1',
        'nv_inference_queue_duration_us{model="m",version="1"} 1',
        'nv_inference_compute_infer_duration_us{model="m",version="1"} 0',
        'nv_inference_pending_request_count{model="m",version="1"} 5',
        ...["REJECTED", "CANCELED", "BACKEND", "OTHER"].map(
          (reason) => `nv_inference_request_failure{model="m",reason="${reason}",version="1"} 0`,
        ),
      ]),
    );
  });

  it("is empty without models", async () => {
    expect(await metricsPage([])).toBe("");
  });

  it("explains each metric family", async () => {
    const labels = { model: "m", version: "1" };
    const page = await metricsPage([
      { labels, cached: false, inflightCount: 0, statistics: new ModelStatistics() },
    ]);
    expect(page).toContain("# TYPE nv_inference_count counter");
    expect(page).toContain("# TYPE nv_inference_pending_request_count gauge");
    expect(page).toContain("# HELP nv_inference_exec_count Number of model executions performed");
  });

  it("has metrics of the machine without any model", async () => {
    const page = await new MetricsPage({ models: () => [] }).write();
    const names = ["cpu_utilization", "cpu_memory_total_bytes", "cpu_memory_used_bytes"];
    for (const name of names) expect(page).toMatch(new RegExp(`^nv_${name} [\\d.e+]+$`, "m"));
    expect(page).toMatch(/^nv_cpu_memory_total_bytes [1-9]/m);
  });

  it("includes the user's own metrics", async () => {
    const page = new MetricsPage({ models: () => [], allowCpuMetrics: false });
    new Counter({ name: "words_total", help: "Words seen", registers: [page.registry] }).inc(3);
    expect(await page.write()).toContain("words_total 3");
  });
});
