import { Counter, Histogram, Registry } from "prom-client";
import { describe, expect, it } from "vitest";
import { MetricsPage } from "../../src/observe/metrics-page.js";
import { ModelStatistics } from "../../src/observe/statistics.js";

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
