import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import { sample, Triton } from "../../../src/index.js";
import { otlp } from "../../../src/opentelemetry/otlp.js";

/** A collector whose answers wait until the test lets them go. */
async function collector() {
  const spans: { name: string; traceId: string; parentSpanId?: string; events?: unknown[] }[] = [];
  const headers: NodeJS.Dict<string | string[]>[] = [];
  let status = 200;
  let held: Promise<void> | undefined;
  const server = createServer(async (request, response) => {
    let text = "";
    for await (const chunk of request) text += chunk;
    await held;
    headers.push(request.headers);
    response.writeHead(status, { "content-type": "application/json" }).end("{}");
    if (status === 200) spans.push(...JSON.parse(text).resourceSpans[0].scopeSpans[0].spans);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/traces`;
  const hold = (): (() => void) => {
    let release = () => {};
    held = new Promise((resolve) => {
      release = resolve;
    });
    return release;
  };
  const answerWith = (code: number): void => {
    status = code;
  };
  return { url, spans, headers, hold, answerWith };
}

type Options = Parameters<typeof otlp>[0];

/** A tracer, with the spans of as many requests as are asked for. */
async function tracerOf(options: Options) {
  const failures: string[] = [];
  const tracer = await otlp({ onFailure: (text) => failures.push(text), ...options });
  const trace = (count: number, name = "m"): void => {
    for (let i = 0; i < count; i++) {
      const request = tracer.start({
        ...{ modelName: name, selected: true, arrival: undefined },
        ...{ now: () => 1, wallOffsetMs: 1_700_000_000_000 },
      })!;
      request.begin(name, 1, { id: "", inputs: new Map() }, 1);
      request.end(2);
      request.release();
    }
  };
  return { tracer, trace, failures };
}

it("loses spans while as many others wait, says how many, and counts them", async () => {
  const { url, spans, hold } = await collector();
  const { tracer, trace, failures } = await tracerOf({ url, maxQueueSize: 20, maxExportBatchSize: 5 });
  const release = hold();
  // Four messages are on their way, and four wait.
  trace(50);
  expect(tracer.lostSpans).toBe(50 - 4 * 5 - 20);
  release();
  await tracer.close!();
  expect(spans).toHaveLength(40);
  expect(failures).toEqual([
    `10 spans were lost: 20 others waited for the collector '${url}'; ` +
      "trace fewer requests (trace_rate), or raise maxQueueSize (bsp_max_queue_size)",
  ]);
});

it("sends every span once, in messages of the largest size, with names of any characters", async () => {
  const { url, spans } = await collector();
  const { tracer, trace, failures } = await tracerOf({ url, maxExportBatchSize: 7 });
  trace(100, 'mod"ell\\ü€😀');
  await tracer.close!();
  expect(failures).toEqual([]);
  expect(spans).toHaveLength(100);
  expect(new Set(spans.map(({ traceId }) => traceId)).size).toBe(100);
  expect(new Set(spans.map(({ name }) => name))).toEqual(new Set(['mod"ell\\ü€😀']));
});

it("counts spans that the collector refuses, and sends headers of the environment", async () => {
  const { url, headers, answerWith } = await collector();
  answerWith(400);
  process.env.OTEL_EXPORTER_OTLP_HEADERS = "api-key=a%20b,x=y";
  onTestFinished(() => void delete process.env.OTEL_EXPORTER_OTLP_HEADERS);
  const { tracer, trace, failures } = await tracerOf({ url });
  trace(3);
  await tracer.close!();
  expect(tracer.lostSpans).toBe(3);
  expect(failures).toEqual([`failed to export 3 spans to '${url}': 400 Bad Request`]);
  expect(headers[0]).toMatchObject({ "api-key": "a b", x: "y" });
});

it("shows lost spans as a metric", async () => {
  const { url, hold } = await collector();
  const release = hold();
  const tracer = await otlp({ url, maxQueueSize: 2, maxExportBatchSize: 1 });
  const triton = new Triton({ tracer });
  const double = triton.bind({
    modelName: "double",
    inputs: [{ name: "x", dtype: "INT32", shape: [1] }],
    outputs: [{ name: "y", dtype: "INT32", shape: [1] }],
    config: { batching: false },
    inferFunc: sample(({ x }) => ({ y: x })),
  });
  for (let i = 0; i < 10; i++) await double.inferSample({ x: [i] });
  // Two spans a request: that of the model and that of its execution.
  expect(await triton.service.metrics()).toContain("tritonjs_trace_lost_total 14\n");
  release();
  await triton.close();
});
