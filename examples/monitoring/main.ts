import { readFile } from "node:fs/promises";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { W3CTraceContextPropagator } from "@opentelemetry/core";
import { TracerProvider } from "@opentelemetry/sdk-trace";
import { batch, Triton } from "@tritonjs/core";
import { http, metrics } from "@tritonjs/http";
import { openTelemetry } from "@tritonjs/operations/opentelemetry";
import { type Prometheus, startPrometheus } from "./prometheus.js";

/*
 * A server that Prometheus scrapes, with the alert rules and the dashboard of this repository.
 *
 *   npm start
 */

const TRACE_ID = "0af7651916cd43dd8448eb211c80319c";

const deploy = new URL("../../../deploy/", import.meta.url);

// What an application has anyway. Usually its spans go to a collector.
const tracerProvider = new TracerProvider({ spanProcessors: [] });
const spans = openTelemetry({ tracerProvider, propagator: new W3CTraceContextPropagator() });

await using triton = new Triton({ extensions: [spans], trace: { rate: 0 } }); // only requests of a trace
const tensors = {
  inputs: [{ name: "x", dtype: "FP32", shape: [1] }],
  outputs: [{ name: "y", dtype: "FP32", shape: [1] }],
  config: { maxBatchSize: 8 },
} as const;
triton.bind({
  ...tensors,
  modelName: "double",
  inferFunc: batch(({ x }) => ({ y: x.data.map((value) => 2 * value) })),
});
triton.bind({
  ...tensors,
  modelName: "broken",
  inferFunc: () => {
    throw new Error("this model fails");
  },
});
const { addresses } = await triton.serve({ frontends: [http({ port: 0 }), metrics({ port: 0 })] });

async function infer(model: string, headers: Record<string, string> = {}): Promise<void> {
  const inputs = [{ name: "x", datatype: "FP32", shape: [1, 1], data: [21] }];
  const init = { method: "POST", headers, body: JSON.stringify({ inputs }) };
  const answer = await fetch(`${addresses.http!.url}/v2/models/${model}/infer`, init);
  await answer.arrayBuffer();
}

await infer("double", { traceparent: `00-${TRACE_ID}-b7ad6b7169203331-01` });
const page = await fetch(`${addresses.metrics!.url}/metrics`, {
  headers: { accept: "application/openmetrics-text" },
});
console.log((await page.text()).split("\n").find((line) => line.includes("trace_id")));

await using prometheus = await startPrometheus(
  addresses.metrics!.url,
  fileURLToPath(new URL("prometheus/alerts.yml", deploy)),
);
if (prometheus === undefined)
  console.log(
    "prometheus is not installed: it would evaluate the alert rules and the queries of the dashboard",
  );
else await watch(prometheus);

/** Sends requests until a rule sees failures, and prints what the rules and the dashboard see. */
async function watch(prometheus: Prometheus): Promise<void> {
  const patience = AbortSignal.timeout(60_000);
  let alerts = await prometheus.alerts();
  while (!alerts.some(({ labels }) => labels.alertname === "TritonRequestsFail")) {
    patience.throwIfAborted();
    await Promise.all(["double", "double", "double", "broken"].map((model) => infer(model)));
    await setTimeout(100);
    alerts = await prometheus.alerts();
  }
  for (const { state, labels, annotations } of alerts)
    console.log(`alert ${labels.alertname} is ${state}: ${annotations.summary}`);
  const traced = await prometheus.exemplars("tritonjs_request_duration_seconds_bucket");
  for (const { seriesLabels, exemplars } of traced)
    console.log(`a request to ${seriesLabels.model} has the trace ${exemplars[0]!.labels.trace_id}`);

  const dashboard = JSON.parse(await readFile(new URL("grafana/tritonjs.json", deploy), "utf8")) as Dashboard;
  const panels = dashboard.panels.filter(({ targets }) => targets !== undefined);
  const empty: string[] = [];
  for (const { title, targets } of panels) {
    const results = await Promise.all(targets!.map(({ expr }) => prometheus.query(withVariables(expr))));
    if (results.flat().length === 0) empty.push(title);
  }
  console.log(`${panels.length - empty.length} panels of the dashboard have data`);
  console.log(`without data: ${empty.join(", ")}`);
}

interface Dashboard {
  readonly panels: readonly {
    readonly title: string;
    readonly targets?: readonly { readonly expr: string }[];
  }[];
}

/** A query as Grafana sends it when all models and servers are chosen. */
function withVariables(query: string): string {
  return query.replaceAll("$__rate_interval", "1m").replaceAll(/\$(?:model|instance)/g, ".*");
}
