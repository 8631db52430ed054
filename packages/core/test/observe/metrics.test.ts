import { Counter, collectDefaultMetrics, Histogram, Registry } from "prom-client";
import { describe, expect, it } from "vitest";
import { MetricsPage, metricsFormat } from "../../src/observe/metrics-page.js";
import type { MeteredModel } from "../../src/observe/model-families.js";
import {
  type ExecutionTimes,
  LatencyHistogram,
  LatencyWatch,
  ModelStatistics,
  OCTAVE_BOUNDS_MS,
} from "../../src/observe/statistics.js";
import { reportStatistics } from "../../src/observe/statistics-report.js";

describe("the format of the metrics page", () => {
  it.each([
    [undefined, "prometheus"],
    ["", "prometheus"],
    ["*/*", "prometheus"],
    ["text/plain", "prometheus"],
    ["application/openmetrics-text", "openmetrics"],
    ["Application/OpenMetrics-Text; version=1.0.0", "openmetrics"],
    ["application/openmetrics-text;version=0.0.1", "prometheus"],
    ["application/openmetrics-text;q=0", "prometheus"],
    ["application/openmetrics-text;q=0.3,text/plain;q=0.7", "prometheus"],
    ["application/openmetrics-text;q=many", "prometheus"],
    [
      "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6," +
        "application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;q=0.4,*/*;q=0.1",
      "openmetrics",
    ],
  ])("for the header Accept '%s' is %s", (accept, format) => {
    expect(metricsFormat(accept)).toBe(format);
  });
});

const TIMES = { start: 3, inputEnd: 3, inferEnd: 7, end: 8 };

function server(registry?: Registry) {
  const statistics = new ModelStatistics();
  const model = {
    labels: { model: 'a"b\\', version: "1" },
    cached: false,
    batched: true,
    inflightCount: 0,
    statistics,
  };
  const page = new MetricsPage({ models: () => [model], allowCpuMetrics: false }, registry && { registry });
  const lines = async (accept = "application/openmetrics-text") =>
    Buffer.concat((await page.writeFor(accept)).body)
      .toString()
      .split("\n");
  return { page, statistics, lines };
}

describe("the metrics in the OpenMetrics format", () => {
  it("have the same series as in Prometheus' format, no empty line, and an end", async () => {
    const { statistics, lines } = server();
    statistics.recordSuccess(1, 0, TIMES);
    const [open, text] = [await lines(), await lines("text/plain")];
    const series = (page: string[]) => page.filter((line) => line !== "" && !line.startsWith("#"));
    expect(series(open)).toEqual(series(text));
    expect(open.slice(-2)).toEqual(["# EOF", ""]);
    expect(open.slice(0, -1)).not.toContain("");
  });

  it("give Triton's counters the type unknown, because their names lack _total", async () => {
    const page = await server().lines();
    expect(page).toContain("# TYPE nv_inference_count unknown");
    expect(page).toContain("# TYPE tritonjs_batch_cut counter");
    expect(page).toContain('tritonjs_batch_cut_total{model="a\\"b\\\\",version="1",reason="SIZE"} 0');
  });

  it("show the trace of the last traced request of each bucket", async () => {
    const { statistics, lines } = server();
    statistics.recordSuccess(1, 0, TIMES);
    statistics.requestDurations.exemplify(8, "0af7651916cd43dd8448eb211c80319c", 1_700_000_000_250);
    const labels = 'model="a\\"b\\\\",version="1"';
    const page = await lines();
    expect(page).toContain(
      `tritonjs_request_duration_seconds_bucket{${labels},le="0.01"} 1 ` +
        '# {trace_id="0af7651916cd43dd8448eb211c80319c"} 0.008 1700000000.25',
    );
    expect(page).toContain(`tritonjs_request_duration_seconds_bucket{${labels},le="0.005"} 0`);
    expect(page).toContain(`tritonjs_queue_duration_seconds_bucket{${labels},le="0.0025"} 0`);
    expect(page).toContain(`tritonjs_queue_duration_seconds_bucket{${labels},le="0.005"} 1`);
    expect(page).toContain(`tritonjs_queue_duration_seconds_sum{${labels}} 0.003`);
    expect((await lines("text/plain")).join()).not.toContain("trace_id");
  });

  it("include the metrics of the program", async () => {
    const registry = new Registry();
    registry.setDefaultLabels({ app: "shop" });
    new Counter({ name: "orders_total", help: 'The "orders"', registers: [registry] }).inc(2);
    const sizes = { name: "size", help: "Size", buckets: [1], labelNames: ["kind"] };
    new Histogram({ ...sizes, registers: [registry] }).observe({ kind: "x" }, 0.5);
    const page = (await server(registry).lines()).join("\n");
    expect(page).toContain(
      '# HELP orders The \\"orders\\"\n# TYPE orders counter\norders_total{app="shop"} 2\n',
    );
    expect(page).toContain('size_bucket{le="1",kind="x",app="shop"} 1\n');
  });

  it("are what a registry of that format writes, whatever the client asks for", async () => {
    const registry = new Registry();
    registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE as never);
    const { page } = server(registry);
    const { type, body } = await page.writeFor("text/plain");
    expect(type).toBe("application/openmetrics-text; version=1.0.0; charset=utf-8");
    expect(Buffer.concat(body).toString()).toBe(await registry.metrics());
  });
});

describe("reported family", () => {
  /** The metrics of a server with one model that has answered `count` requests. */
  function server(count: number, registry: Registry, labels: Record<string, string> = {}) {
    const statistics = new ModelStatistics();
    for (let i = 0; i < count; i++)
      statistics.recordSuccess(1, 0, { start: 0, inputEnd: 0, inferEnd: 0, end: 0 });
    const model = { labels: { model: "m", version: "1" }, cached: false, inflightCount: 0, statistics };
    const page = new MetricsPage({ models: () => [model], allowCpuMetrics: false }, { registry, labels });
    page.open();
    return { page, statistics };
  }

  function series(text: string, name: string): string[] {
    return text.split("\n").filter((line) => line.startsWith(`${name}{`));
  }

  describe("metrics in the registry of a program", () => {
    it("are read whenever the registry is scraped", async () => {
      const registry = new Registry();
      new Counter({ name: "orders_total", help: "Orders", registers: [registry] }).inc(2);
      const { page, statistics } = server(3, registry);
      const text = await registry.metrics();
      expect(series(text, "nv_inference_request_success")).toEqual([
        'nv_inference_request_success{model="m",version="1"} 3',
      ]);
      expect(text).toContain("orders_total 2");
      expect(await page.write()).toBe(text);
      statistics.recordSuccess(1, 0, { start: 0, inputEnd: 0, inferEnd: 0, end: 0 });
      expect(await registry.getSingleMetricAsString("nv_inference_request_success")).toContain("} 4");
      const json = await registry.getMetricsAsJSON();
      expect(json.find(({ name }) => name === "nv_inference_count")).toMatchObject({
        type: "counter",
        values: [{ labels: { model: "m", version: "1" }, value: 4 }],
      });
    });

    it("get the labels of the registry and of the server, and keep their values in a reset", async () => {
      const registry = new Registry();
      registry.setDefaultLabels({ app: "shop" });
      server(1, registry, { server: "a" });
      registry.resetMetrics();
      expect(series(await registry.metrics(), "nv_inference_count")).toEqual([
        'nv_inference_count{server="a",model="m",version="1",app="shop"} 1',
      ]);
    });

    it("can come from several servers with different labels, and leave with them", async () => {
      const registry = new Registry();
      const a = server(1, registry, { server: "a" });
      const b = server(2, registry, { server: "b" });
      const both = await registry.metrics();
      expect(both.match(/# TYPE nv_inference_count /g)).toHaveLength(1);
      expect(series(both, "nv_inference_count")).toEqual([
        'nv_inference_count{server="a",model="m",version="1"} 1',
        'nv_inference_count{server="b",model="m",version="1"} 2',
      ]);
      a.page.close();
      expect(series(await registry.metrics(), "nv_inference_count")).toEqual([
        'nv_inference_count{server="b",model="m",version="1"} 2',
      ]);
      b.page.close();
      expect(registry.getMetricsAsArray()).toEqual([]);
    });

    it("are refused for a second server with the same labels, until the first is closed", () => {
      const registry = new Registry();
      const first = server(1, registry);
      expect(() => server(1, registry)).toThrow(
        "metrics.registry: another Triton already reports to this registry with the labels []: close it first, or give " +
          "each Triton other metrics.labels",
      );
      first.page.close();
      server(1, registry);
    });

    it("are refused beside other metrics of the same name, and then leave nothing", () => {
      const registry = new Registry();
      new Counter({ name: "nv_inference_count", help: "Mine", registers: [registry] });
      expect(() => server(1, registry)).toThrow(
        "metrics.registry: the registry already has a metric 'nv_inference_count' that is not from a Triton",
      );
      expect(registry.getMetricsAsArray()).toHaveLength(1);
    });

    it("fit registries for OpenMetrics and with the metrics of Node.js", async () => {
      const registry = new Registry();
      registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE as never);
      collectDefaultMetrics({ register: registry });
      const { page } = server(1, registry);
      for (let turn = 0; turn < 2; turn++) {
        expect(await registry.metrics()).toContain('nv_inference_count_total{model="m",version="1"} 1');
      }
      page.close();
      expect(await registry.metrics()).not.toContain("nv_");
      registry.clear();
    });

    it.each(["model", "le", "1st", "a-b"])("reject the label %s", (name) => {
      expect(() => server(1, new Registry(), { [name]: "x" })).toThrow(
        `none of model, version, namespace, reason, le, quantile, gpu_uuid, got '${name}'`,
      );
    });
  });
});

describe("long metrics page", () => {
  /** A server of many models. Its clock goes on by a millisecond whenever it is read. */
  function server(count: number, registry?: Registry) {
    const models = Array.from({ length: count }, (_, i): MeteredModel => {
      const labels = { model: `m${i}`, version: "1" };
      return { labels, cached: false, batched: true, inflightCount: 0, statistics: new ModelStatistics() };
    });
    const clock = { nowMs: 0 };
    const page = new MetricsPage(
      { models: () => models, allowCpuMetrics: false },
      registry && { registry },
      () => clock.nowMs++,
    );
    return { page, models, clock };
  }

  /** Turns of the event loop until a promise settles. */
  async function turnsOf<T>(promise: Promise<T>): Promise<readonly [turns: number, value: T]> {
    let turns = 0;
    let waiting = true;
    const count = (): void => {
      turns++;
      if (waiting) setImmediate(count);
    };
    setImmediate(count);
    const value = await promise;
    waiting = false;
    return [turns, value];
  }

  function linesOf(body: readonly Uint8Array[]): string[] {
    return Buffer.concat(body).toString().split("\n");
  }

  describe("the metrics page of many models", () => {
    it.each(["text/plain", "application/openmetrics-text"])(
      "is written as %s in turns of the event loop",
      async (accept) => {
        const { page } = server(500);
        const [turns, { body }] = await turnsOf(page.writeFor(accept));
        const lines = linesOf(body);
        expect(lines.length).toBeGreaterThan(20_000);
        // The clock is read after 32 series, and a turn ends with the fifth reading.
        expect(turns).toBeGreaterThan(lines.length / (32 * 6));
        expect(lines.filter((line) => line.startsWith("nv_inference_count{"))).toHaveLength(500);
      },
    );

    it("has the series that the registry writes, with its labels", async () => {
      const registry = new Registry();
      registry.setDefaultLabels({ app: 'a "shop"' });
      const { page } = server(50, registry);
      const { body } = await page.writeFor("text/plain");
      expect(linesOf(body)).toEqual((await registry.metrics()).split("\n"));
    });

    it("serves clients that come while it is written and within a second after it", async () => {
      const { page, models, clock } = server(500);
      const first = page.writeFor("text/plain");
      // The first 10,000 series take this many turns.
      for (let turn = 0; turn < 10_000 / (32 * 4); turn++) await new Promise(setImmediate);
      const second = page.writeFor("text/plain");
      expect(await second).toBe(await first);
      models[0]!.statistics.recordSuccess(1, 0, { start: 0, inputEnd: 0, inferEnd: 0, end: 0 });
      expect(await page.writeFor("text/plain")).toBe(await first);
      clock.nowMs += 1000;
      const later = await page.writeFor("text/plain");
      expect(linesOf(later.body)).toContain('nv_inference_request_success{model="m0",version="1"} 1');
    });

    it("is new for each client when it has few series, also where it takes several turns", async () => {
      const { page, models } = server(20);
      await page.writeFor("text/plain");
      models[0]!.statistics.recordSuccess(1, 0, { start: 0, inputEnd: 0, inferEnd: 0, end: 0 });
      const { body } = await page.writeFor("text/plain");
      expect(linesOf(body)).toContain('nv_inference_request_success{model="m0",version="1"} 1');
    });
  });
});

const times: ExecutionTimes = { start: 10, inputEnd: 11, inferEnd: 14, end: 14.5 };

describe("model statistics", () => {
  it("count rows and batch times of a successful request", () => {
    const statistics = new ModelStatistics();
    statistics.recordSuccess(3, 4, times);
    expect(statistics).toMatchObject({
      inferenceCount: 3,
      success: { count: 1, ns: 10_500_000 },
      queue: { count: 1, ns: 6_000_000 },
      computeInput: { count: 1, ns: 1_000_000 },
      computeInfer: { count: 1, ns: 3_000_000 },
      computeOutput: { count: 1, ns: 500_000 },
    });
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

describe("latency counts", () => {
  it("reads quantiles to within 9%", () => {
    const counts = new LatencyHistogram(OCTAVE_BOUNDS_MS);
    for (let i = 1; i <= 1000; i++) counts.observe(i / 10);
    for (const share of [0.5, 0.9, 0.99]) {
      const ratio = counts.quantile(share)! / (share * 100);
      expect(Math.abs(Math.log2(ratio))).toBeLessThan(1 / 8);
    }
    expect(new LatencyHistogram(OCTAVE_BOUNDS_MS).quantile(0.5)).toBeUndefined();
  });

  it("tells the durations between two looks apart, and takes any duration", () => {
    const counts = new LatencyHistogram(OCTAVE_BOUNDS_MS);
    counts.observe(1000);
    const earlier = counts.copy();
    for (const odd of [0, -1, 1e12, 2]) counts.observe(odd);
    const since = counts.since(earlier);
    expect(since.total).toBe(4);
    expect(since.quantile(1)).toBeGreaterThan(100_000);
    expect(since.quantile(0.01)).toBeLessThan(0.01);
  });
});

const answer = (watch: LatencyWatch, count: number, requestMs = (_: number) => 3) => {
  for (let i = 0; i < count; i++) watch.add(1, 2, requestMs(i));
};

describe("latency watch", () => {
  it("counts every request of a model that answers few between two looks", () => {
    const watch = new LatencyWatch();
    for (let look = 0; look < 3; look++) {
      answer(watch, 1000);
      watch.looked();
    }
    expect(watch.request.total).toBe(3000);
    expect([watch.queue.total, watch.compute.total]).toEqual([3000, 3000]);
  });

  it("counts only some requests of a fast model, without a change of its quantiles", () => {
    const watch = new LatencyWatch();
    answer(watch, 400_000);
    watch.looked();
    const before = watch.request.copy();
    // The latency depends on the place in a batch of 64.
    answer(watch, 400_000, (i) => 1 + (i % 64));
    const counted = watch.request.since(before);
    expect(counted.total).toBeGreaterThan(900);
    expect(counted.total).toBeLessThan(1200);
    expect(counted.quantile(0.5)! / 32).toBeCloseTo(1, 0.9);
    expect(counted.quantile(0.99)! / 63).toBeCloseTo(1, 0.9);
  });

  it("counts only some thousand requests of a fast model before its first look", () => {
    const watch = new LatencyWatch();
    answer(watch, 400_000, (i) => 1 + (i % 64));
    expect(watch.request.total).toBeLessThan(8000);
    expect(watch.request.quantile(0.5)! / 32).toBeCloseTo(1, 0.9);
  });

  it("counts every request again once the model is slow", () => {
    const watch = new LatencyWatch();
    answer(watch, 400_000);
    watch.looked();
    watch.looked();
    const before = watch.request.copy();
    answer(watch, 100);
    expect(watch.request.since(before).total).toBeGreaterThanOrEqual(99);
  });
});
