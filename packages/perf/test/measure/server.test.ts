import { describe, expect, it } from "vitest";
import {
  MetricsWatch,
  type ModelCounters,
  overheadMs,
  readPrometheusText,
  SERVER_STAGES,
  type ServerView,
  ServerWatch,
  stageMs,
} from "../../src/measure/server-watch.js";

function countersOf(name: string, version: string, requests: number, queueMs = 1): ModelCounters {
  const duration = (ms: number) => ({ count: requests, ns: ms * 1e6 * requests });
  const stages = Object.fromEntries(SERVER_STAGES.map((stage) => [stage, { count: 0, ns: 0 }]));
  return {
    name,
    version,
    inferenceCount: requests * 2,
    executionCount: requests / 2,
    stages: {
      ...stages,
      success: duration(10),
      queue: duration(queueMs),
      computeInput: duration(1),
      computeInfer: duration(5),
      computeOutput: duration(2),
    } as ModelCounters["stages"],
    batches: new Map([[4, requests / 2]]),
  };
}

class FakeView implements ServerView {
  counts: Record<string, ModelCounters[]> = {};
  constructor(
    readonly known: readonly string[] = ["statistics"],
    readonly stepNames: Readonly<Record<string, readonly string[]>> = {},
  ) {}
  async extensions() {
    return this.known;
  }
  async steps({ name }: { name: string }) {
    return (this.stepNames[name] ?? []).map((step) => ({ name: step, version: "" }));
  }
  async counters({ name }: { name: string }) {
    return this.counts[name] ?? [];
  }
}

const model = { name: "m", version: "" };

describe("watching a server", () => {
  it("is not possible without the statistics extension", async () => {
    expect(await ServerWatch.open(new FakeView(["model_repository"]), model)).toBeUndefined();
  });

  it("gives the difference of two looks", async () => {
    const view = new FakeView();
    const watch = (await ServerWatch.open(view, model))!;
    view.counts.m = [countersOf("m", "1", 100)];
    const before = await watch.look();
    view.counts.m = [countersOf("m", "1", 300)];
    const figures = watch.difference(before, await watch.look())!;
    expect(figures.stages.success.count).toBe(200);
    expect(figures.inferenceCount).toBe(400);
    expect(figures.executionCount).toBe(100);
    expect(figures.batches).toEqual([{ batchSize: 4, count: 100 }]);
    expect(stageMs(figures, "computeInfer")).toBeCloseTo(5, 9);
    expect(overheadMs(figures)).toBeCloseTo(1, 9);
  });

  it("chooses the highest version that answered requests, and warns about several", async () => {
    const view = new FakeView();
    const watch = (await ServerWatch.open(view, model))!;
    view.counts.m = [countersOf("m", "1", 10), countersOf("m", "2", 10), countersOf("m", "10", 10)];
    const before = await watch.look();
    view.counts.m = [countersOf("m", "1", 20), countersOf("m", "2", 20), countersOf("m", "10", 10)];
    expect(watch.difference(before, await watch.look())!.version).toBe("2");
    expect([...watch.warnings]).toEqual([
      "Several versions of model 'm' answered requests; the report shows version 2.",
    ]);
  });

  it("counts from zero after a reload", async () => {
    const view = new FakeView();
    const watch = (await ServerWatch.open(view, model))!;
    view.counts.m = [countersOf("m", "1", 100)];
    const before = await watch.look();
    view.counts.m = [countersOf("m", "1", 40)];
    expect(watch.difference(before, await watch.look())!.stages.success.count).toBe(40);
  });

  it("shows the models of an ensemble, also of one within another", async () => {
    const view = new FakeView(["statistics"], { m: ["inner", "a"], inner: ["b", "m"] });
    const watch = (await ServerWatch.open(view, model))!;
    for (const name of ["m", "inner", "a", "b"]) view.counts[name] = [countersOf(name, "1", 4)];
    const figures = watch.difference(new Map(), await watch.look())!;
    expect(figures.composing.map(({ name }) => name)).toEqual(["inner", "a"]);
    expect(figures.composing[0]!.composing.map(({ name }) => name)).toEqual(["b"]);
  });
});

describe("a metrics page", () => {
  it("is read with labels, escapes, timestamps and special values", () => {
    const page = [
      "# HELP x a, b",
      'x{a="1",b="say \\"hi\\", {you}\\n"} 2.5e3 1700000000',
      "plain 7",
      "y +Inf",
      "not a sample line at all {",
    ].join("\n");
    expect(readPrometheusText(page)).toEqual([
      { name: "x", labels: { a: "1", b: 'say "hi", {you}\n' }, value: 2500 },
      { name: "plain", labels: {}, value: 7 },
      { name: "y", labels: {}, value: Number.POSITIVE_INFINITY },
    ]);
  });
});

describe("watching metrics", () => {
  it("gives means and maxima by GPU, and differences of the reasons of cuts", async () => {
    const pages = [
      'nv_gpu_utilization{gpu_uuid="G"} 0.2\nnv_gpu_memory_used_bytes{gpu_uuid="G"} 10\n' +
        'tritonjs_batch_cut_total{model="m",reason="SIZE",version="1"} 5\n',
      'nv_gpu_utilization{gpu_uuid="G"} 0.6\nnv_gpu_memory_used_bytes{gpu_uuid="G"} 30\n' +
        'tritonjs_batch_cut_total{model="m",reason="SIZE",version="1"} 9\n' +
        'tritonjs_batch_cut_total{model="m",reason="DELAY",version="1"} 2\n',
      'nv_gpu_memory_used_bytes{gpu_uuid="G"} 20\n' +
        'nv_inference_pending_request_count{model="other"} 9\nnv_inference_pending_request_count{model="m"} 4\n' +
        'tritonjs_batch_cut_total{model="m",reason="SIZE",version="1"} 10\n' +
        'tritonjs_batch_cut_total{model="m",reason="DELAY",version="1"} 2\n',
    ];
    const watch = new MetricsWatch(async () => pages.shift()!, "m");
    watch.begin();
    for (let i = 0; i < 3; i++) await watch.read();
    const { gauges, cuts } = watch.figures();
    expect(gauges.nv_gpu_utilization!.G).toBeCloseTo(0.4, 9);
    expect(gauges.nv_gpu_memory_used_bytes).toEqual({ G: 30 });
    expect(gauges.nv_inference_pending_request_count).toEqual({ "": 4 });
    expect(cuts.get("m")).toEqual({ SIZE: 5, DELAY: 2 });
  });

  it("keeps the failure to read a page", async () => {
    const watch = new MetricsWatch(() => Promise.reject(new Error("connection refused")), "m");
    await watch.read();
    expect(watch.failure).toBe("connection refused");
    expect(watch.figures().pages).toBe(0);
  });
});
