import { describe, expect, it } from "vitest";
import { MetricsWatch, readPrometheusText } from "../../../../src/measure/server-watch.js";

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
