import { sample, Triton } from "@tritonjs/core";
import { Registry } from "prom-client";
import { describe, expect, it, onTestFinished } from "vitest";

const spec = { dtype: "FP32", shape: [1] } as const;

function open(options: ConstructorParameters<typeof Triton>[0]) {
  const triton = new Triton(options);
  onTestFinished(() => triton.close());
  const model = triton.bind({
    modelName: "m",
    inputs: [{ name: "x", ...spec }],
    outputs: [{ name: "y", ...spec }],
    inferFunc: sample(({ x }) => ({ y: x.data })),
  });
  return { triton, model };
}

describe("the metrics of a Triton", () => {
  it("are in triton.metrics, as on the page", async () => {
    const { triton, model } = open({});
    await model.infer({ x: [1] });
    const text = await triton.metrics.metrics();
    expect(text).toContain('nv_inference_request_success{model="m",version="1"} 1');
    expect(text).toMatch(/^nv_cpu_memory_total_bytes [1-9]/m);
    expect(await triton.service.metrics()).toContain('nv_inference_count{model="m",version="1"} 1');
  });

  it("are in the registry of the program until the Triton is closed", async () => {
    const registry = new Registry();
    const { triton, model } = open({ metrics: { registry, labels: { server: "a" } } });
    expect(triton.metrics).toBe(registry);
    await model.infer({ x: [1] });
    const line = 'nv_inference_count{server="a",model="m",version="1"} 1';
    expect(await registry.metrics()).toContain(line);
    expect(() => open({ metrics: { registry, labels: { server: "a" } } })).toThrow(
      "another Triton already reports",
    );
    await triton.close();
    expect(await registry.metrics()).not.toContain("nv_");
    open({ metrics: { registry, labels: { server: "a" } } });
  });

  it("include the process and its event loop on the page only", async () => {
    const { triton } = open({});
    const page = await triton.service.metrics();
    for (const family of [
      "process_cpu_seconds_total",
      "process_resident_memory_bytes",
      "nodejs_heap_size_used_bytes",
      "nodejs_eventloop_utilization",
      "nodejs_eventloop_lag_p99_seconds",
    ]) {
      expect(page).toMatch(new RegExp(`^${family} \\d`, "m"));
      expect(await triton.metrics.metrics()).not.toContain(family);
    }
  });

  it("are not left in the registry by a Triton with invalid options", async () => {
    const registry = new Registry();
    const security = { authenticate: () => {}, publicEndpoints: ["helth"] as never };
    expect(() => new Triton({ metrics: { registry }, security })).toThrow("Invalid endpoint names");
    expect(registry.getMetricsAsArray()).toEqual([]);
  });
});
