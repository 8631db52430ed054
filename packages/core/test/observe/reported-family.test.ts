import { Counter, collectDefaultMetrics, Registry } from "prom-client";
import { describe, expect, it } from "vitest";
import { MetricsPage } from "../../src/observe/metrics-page.js";
import { ModelStatistics } from "../../src/observe/statistics.js";

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
