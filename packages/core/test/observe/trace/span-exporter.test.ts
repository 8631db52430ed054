import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { VirtualClock } from "../../../src/clock/virtual-clock.js";
import { Log } from "../../../src/observe/log/log.js";
import type { OpenTelemetryOptions } from "../../../src/observe/trace/span-exporter.js";
import { readTraceparent } from "../../../src/observe/trace/trace-context.js";
import { resolveTraceOptions, type TraceOptions } from "../../../src/observe/trace/trace-options.js";
import type { Span } from "../../../src/observe/trace/trace-spans.js";
import { Tracing } from "../../../src/observe/trace/tracing.js";

const traceId = "0af7651916cd43dd8448eb211c80319c";
const parentSpanId = "b7ad6b7169203331";
const traceparent = `00-${traceId}-${parentSpanId}-01`;
const noInputs = { id: "", inputs: new Map() };

interface Message {
  readonly resourceSpans: readonly [
    { readonly resource: object; readonly scopeSpans: readonly [{ readonly spans: readonly Span[] }] },
  ];
}

/** A collector that keeps what it receives, and tracing that sends to it. */
async function bench(
  options: TraceOptions = {},
  spans: OpenTelemetryOptions = {},
  status = 200,
  scheme = "http://",
) {
  const messages: Message[] = [];
  const server = createServer(async (request, response) => {
    let text = "";
    for await (const chunk of request) text += chunk;
    messages.push(JSON.parse(text));
    response.writeHead(status).end("{}");
  });
  server.listen(0);
  await once(server, "listening");
  onTestFinished(() => void server.close());
  const url = `${scheme}localhost:${(server.address() as AddressInfo).port}/v1/traces`;
  const lines: string[] = [];
  const push = (line: string) => lines.push(line);
  const log = new Log({ error: push, warn: push, info: push, debug: push });
  const clock = new VirtualClock();
  const openTelemetry = { url, ...spans };
  const given = { level: "TIMESTAMPS", rate: 1, mode: "opentelemetry", openTelemetry, ...options } as const;
  const tracing = new Tracing(given, clock, log);
  const run = (header?: string) => {
    const trace = tracing.sample("m", header);
    trace?.begin("m", 1, noInputs, 1);
    trace?.end(2);
    trace?.release();
    return trace !== undefined;
  };
  const received = () => messages.flatMap(({ resourceSpans: [{ scopeSpans }] }) => scopeSpans[0].spans);
  return { tracing, run, received, messages, lines, clock };
}

describe("an exported trace", () => {
  it("keeps any number of timestamps", async () => {
    const { tracing, received } = await bench();
    const trace = tracing.sample("m")!;
    for (let response = 1; response <= 250_000; response++) trace.mark("INFER_RESPONSE_COMPLETE", response);
    trace.release();
    await tracing.close();
    expect(received()).toMatchObject([
      { name: "InferRequest", startTimeUnixNano: "1000000", endTimeUnixNano: "250000000000" },
    ]);
  });

  it("becomes spans: one for the whole, for each request, and for its computation", async () => {
    const { tracing, received, messages } = await bench({}, { resource: { zone: "a" } });
    const trace = tracing.sample("m")!;
    trace.mark("HTTP_RECV_START", 1);
    trace.begin("m", 3, { ...noInputs, id: "r" }, 2);
    trace.batch({ batchSize: 4, requestCount: 2, cut: "SIZE", instance: "m_0" });
    const child = trace.child();
    child.begin("c", 1, noInputs, 3);
    child.end(4);
    trace.compute({ start: 3, inputEnd: 3.5, inferEnd: 5, end: 6 });
    trace.end(7);
    trace.mark("HTTP_SEND_END", 8);
    trace.release();
    await tracing.close();
    const [root, request, compute, called] = received();
    const ns = (milliseconds: number) => String(milliseconds * 1e6);
    expect(root).toMatchObject({
      name: "InferRequest",
      kind: 2,
      startTimeUnixNano: ns(1),
      endTimeUnixNano: ns(8),
    });
    expect(root!.parentSpanId).toBeUndefined();
    expect(root!.events.map(({ name }) => name)).toEqual(["HTTP_RECV_START", "HTTP_SEND_END"]);
    expect(request).toMatchObject({
      name: "m",
      kind: 1,
      parentSpanId: root!.spanId,
      startTimeUnixNano: ns(2),
      endTimeUnixNano: ns(7),
    });
    expect(request!.events.map(({ name }) => name)).toEqual(["REQUEST_START", "QUEUE_START", "REQUEST_END"]);
    expect(
      Object.fromEntries(request!.attributes.map(({ key, value }) => [key, Object.values(value)[0]])),
    ).toEqual({
      "triton.model_name": "m",
      "triton.model_version": "3",
      "triton.trace_id": "1",
      "triton.trace_parent_id": "0",
      "triton.request_id": "r",
      "tritonjs.batch.size": "4",
      "tritonjs.batch.requests": "2",
      "tritonjs.batch.cut": "SIZE",
      "tritonjs.batch.instance": "m_0",
    });
    expect(compute).toMatchObject({
      name: "compute",
      parentSpanId: request!.spanId,
      startTimeUnixNano: ns(3),
    });
    expect(called).toMatchObject({ name: "c", parentSpanId: request!.spanId });
    expect(new Set(received().map((span) => span.traceId)).size).toBe(1);
    expect(root!.traceId).toMatch(/^[0-9a-f]{32}$/);
    expect(messages[0]!.resourceSpans[0].resource).toEqual({
      attributes: [
        { key: "service.name", value: { stringValue: "triton-inference-server" } },
        { key: "zone", value: { stringValue: "a" } },
      ],
    });
  });

  it("is sent to a collector whose URL has no scheme", async () => {
    const { tracing, run, received } = await bench({}, {}, 200, "");
    run();
    await tracing.close();
    expect(received()).not.toEqual([]);
  });

  it.each(["127.0.0.1:4318", "collector:4318/v1/traces", "[::1]:4318"])("may be sent to %s", (url) => {
    const { ofMode } = resolveTraceOptions({ mode: "opentelemetry", openTelemetry: { url } });
    expect(ofMode).toMatchObject({ url });
  });

  it("continues the client's trace, whose requests are all traced", async () => {
    const { tracing, run, received } = await bench({ rate: 1000, count: 1 });
    expect([run(), run(traceparent), run("00-nonsense")]).toEqual([false, true, false]);
    await tracing.close();
    expect(received()[0]).toMatchObject({ name: "InferRequest", traceId, parentSpanId });
  });

  it("records only client traces with rate 0, and none while tracing is off", async () => {
    const { tracing, run, lines } = await bench({ rate: 0 });
    expect([run(), run(traceparent)]).toEqual([false, true]);
    expect(lines).toEqual([]);
    tracing.update("", { levels: [] });
    expect(run(traceparent)).toBe(false);
    await tracing.close();
  });
});

describe("the span exporter", () => {
  it("waits the configured time to send spans together", async () => {
    const { run, tracing, clock, messages } = await bench(
      {},
      { scheduleDelayMs: 100, maxExportBatchSize: 6 },
    );
    run();
    await clock.advance(99);
    expect(messages).toHaveLength(0);
    run();
    run();
    await tracing.close();
    expect(messages.map(({ resourceSpans: [{ scopeSpans }] }) => scopeSpans[0].spans.length)).toEqual([6]);
  });

  it("drops what it cannot hold and logs it", async () => {
    const { run, tracing, received, lines } = await bench({}, { maxQueueSize: 3 });
    for (let i = 0; i < 4; i++) run();
    await tracing.close();
    expect(received()).toHaveLength(3);
    expect(lines).toEqual(["5 spans were lost: the collector takes them more slowly than they are made"]);
  });

  it("logs spans that a collector refuses or does not receive", async () => {
    const refused = await bench({}, {}, 503);
    refused.run();
    await refused.tracing.close();
    expect(refused.lines).toEqual([
      expect.stringMatching(/^failed to export 2 spans to .*sent HTTP status 503/),
    ]);
    const absent = await bench({}, { url: "http://localhost:1/v1/traces" });
    absent.run();
    await absent.tracing.close();
    expect(absent.lines).toEqual([
      expect.stringMatching(/^failed to export 2 spans to 'http:\/\/localhost:1/),
    ]);
  });
});

describe("traceparent", () => {
  it.each([
    [traceparent, true],
    [`cc-${traceId}-${parentSpanId}-00-more`, true],
    [undefined, false],
    [`ff-${traceId}-${parentSpanId}-01`, false],
    [`00-${"0".repeat(32)}-${parentSpanId}-01`, false],
    [`00-${traceId}-${"0".repeat(16)}-01`, false],
    [`00-${traceId.toUpperCase()}-${parentSpanId}-01`, false],
    [`00-${traceId}-${parentSpanId}`, false],
  ])("%j is valid: %j", (header, valid) => {
    expect(readTraceparent(header)).toEqual(valid ? { traceId, parentSpanId } : undefined);
  });
});

it("opentelemetry settings show the mode, and tensors are not recorded", async () => {
  const { tracing, lines } = await bench({ level: ["TIMESTAMPS", "TENSORS"] }, { scheduleDelayMs: 1 });
  const { mode, ofMode } = tracing.settings();
  expect([mode, ofMode]).toMatchObject([
    "opentelemetry",
    { bsp_max_queue_size: "2048", bsp_schedule_delay: "1", bsp_max_export_batch_size: "512" },
  ]);
  expect(lines).toEqual(["trace level TENSORS has no effect in trace mode opentelemetry: use mode triton"]);
});
