import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { sample, Triton } from "@tritonjs/core";
import type { Extension, ExtensionServer } from "@tritonjs/core/extension";
import { serviceOf } from "@tritonjs/server";
import { afterEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { loadSpanTracer, type SpanSettings } from "../../src/serve/span-tracer.js";

describe("span tracer", () => {
  afterEach(() => {
    vi.doUnmock("@opentelemetry/exporter-trace-otlp-grpc");
    vi.resetModules();
  });

  /** A collector that answers with a status; returns its address without a scheme, and what it received. */
  async function collector(status: number) {
    const received: string[] = [];
    const server = createServer(async (request, response) => {
      let text = "";
      for await (const chunk of request) text += chunk;
      received.push(text);
      response.writeHead(status, { "content-type": "application/json" }).end("{}");
    });
    server.listen(0);
    await once(server, "listening");
    onTestFinished(() => void server.close());
    return { url: `localhost:${(server.address() as AddressInfo).port}/v1/traces`, received };
  }

  /** Sends the span of one request. Returns the messages about failures. */
  async function sendOne(settings: Parameters<typeof loadSpanTracer>[0]): Promise<string[]> {
    const failures: string[] = [];
    const { tracer, close } = attached(await loadSpanTracer(settings, (message) => failures.push(message)));
    const trace = tracer!.start({
      modelName: "m",
      selected: true,
      arrival: undefined,
      now: () => 1,
      wallOffsetMs: 1_700_000_000_000,
    })!;
    trace.begin("m", 1, { id: "a", inputs: new Map() }, 1);
    trace.end(2);
    trace.release();
    await close?.();
    return failures;
  }

  describe("the exporter of spans", () => {
    it("sends spans with the resource to a URL without a scheme", async () => {
      const { url, received } = await collector(200);
      expect(await sendOne({ url, resource: { "service.name": "mine" }, maxQueueSize: 7 })).toEqual([]);
      const [{ resource, scopeSpans }] = JSON.parse(received[0]!).resourceSpans;
      expect(resource.attributes).toContainEqual({ key: "service.name", value: { stringValue: "mine" } });
      expect(scopeSpans[0].spans).toMatchObject([
        { name: "m", startTimeUnixNano: "1700000000001000000", endTimeUnixNano: "1700000000002000000" },
      ]);
    });

    it("reports spans that the collector refuses", async () => {
      const { url } = await collector(400);
      expect(await sendOne({ url, resource: {} })).toEqual([
        expect.stringContaining(`failed to export 1 spans to 'http://${url}': `),
      ]);
    });

    it("refuses settings that make no sense", async () => {
      await expect(sendOne({ url: "http://:", resource: {} })).rejects.toThrow(
        "otlp.url: expected a URL, got http://:",
      );
      await expect(sendOne({ maxQueueSize: -1, resource: {} })).rejects.toThrow(
        "otlp.maxQueueSize: expected an integer of at least 0, got -1",
      );
    });

    it("says which package to install when it is missing", async () => {
      process.env.OTEL_EXPORTER_OTLP_PROTOCOL = "grpc";
      onTestFinished(() => void delete process.env.OTEL_EXPORTER_OTLP_PROTOCOL);
      // The other tests use none of gRPC.
      vi.doMock("@opentelemetry/exporter-trace-otlp-grpc", () => {
        throw new Error("Cannot find package");
      });
      await expect(sendOne({ resource: {} })).rejects.toThrow(
        /^trace mode opentelemetry: a package is missing; .*npm install @opentelemetry\/api/,
      );
    });
  });
});

/** A collector whose answers wait until the test lets them go. */
async function heldCollector() {
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

/** The parts of an extension that needs nothing of its server. */
const attached = (extension: Extension) => extension.attach({} as ExtensionServer);

/** A tracer, with the spans of as many requests as are asked for. */
async function tracerOf(settings: Partial<SpanSettings>) {
  const failures: string[] = [];
  const extension = await loadSpanTracer({ resource: {}, ...settings }, (text) => failures.push(text));
  const { tracer, close } = attached(extension);
  const trace = (count: number, name = "m"): void => {
    for (let i = 0; i < count; i++) {
      const request = tracer!.start({
        ...{ modelName: name, selected: true, arrival: undefined },
        ...{ now: () => 1, wallOffsetMs: 1_700_000_000_000 },
      })!;
      request.begin(name, 1, { id: "", inputs: new Map() }, 1);
      request.end(2);
      request.release();
    }
  };
  return { tracer: tracer!, close: close!, trace, failures };
}

describe("span queue", () => {
  it("loses spans while as many others wait, says how many, and counts them", async () => {
    const { url, spans, hold } = await heldCollector();
    const { tracer, close, trace, failures } = await tracerOf({
      url,
      maxQueueSize: 20,
      maxExportBatchSize: 5,
    });
    const release = hold();
    // One message is on its way, and four wait.
    trace(50);
    expect(tracer.lostSpans).toBe(50 - 5 - 20);
    release();
    await close();
    expect(spans).toHaveLength(25);
    expect(failures).toEqual([
      `25 spans were lost: 20 others waited for the collector '${url}'; ` +
        "trace fewer requests (trace_rate), or raise maxQueueSize (bsp_max_queue_size)",
    ]);
  });

  it("sends every span once, in messages of the largest size, with names of any characters", async () => {
    const { url, spans } = await heldCollector();
    const { close, trace, failures } = await tracerOf({ url, maxExportBatchSize: 7 });
    trace(100, 'mod"ell\\ü€😀');
    await close();
    expect(failures).toEqual([]);
    expect(spans).toHaveLength(100);
    expect(new Set(spans.map(({ traceId }) => traceId)).size).toBe(100);
    expect(new Set(spans.map(({ name }) => name))).toEqual(new Set(['mod"ell\\ü€😀']));
  });

  it("counts spans that the collector refuses, and sends headers of the environment", async () => {
    const { url, headers, answerWith } = await heldCollector();
    answerWith(400);
    process.env.OTEL_EXPORTER_OTLP_HEADERS = "api-key=a%20b,x=y";
    onTestFinished(() => void delete process.env.OTEL_EXPORTER_OTLP_HEADERS);
    const { tracer, close, trace, failures } = await tracerOf({ url });
    trace(3);
    await close();
    expect(tracer.lostSpans).toBe(3);
    expect(failures).toEqual([`failed to export 3 spans to '${url}': 400 Bad Request`]);
    expect(headers[0]).toMatchObject({ "api-key": "a b", x: "y" });
  });

  it("speaks the protocol that the environment names", async () => {
    const { url, headers, answerWith } = await heldCollector();
    answerWith(202);
    process.env.OTEL_EXPORTER_OTLP_PROTOCOL = "http/protobuf";
    onTestFinished(() => void delete process.env.OTEL_EXPORTER_OTLP_PROTOCOL);
    const { close, trace, failures } = await tracerOf({ url });
    trace(1);
    await close();
    expect(failures).toEqual([]);
    expect(headers[0]).toMatchObject({ "content-type": "application/x-protobuf" });
    process.env.OTEL_EXPORTER_OTLP_PROTOCOL = "zipkin";
    await expect(tracerOf({ url })).rejects.toThrow(
      "otlp.protocol: expected one of http/json, http/protobuf, grpc, got zipkin",
    );
  });

  it("shows lost spans as a metric", async () => {
    const { url, hold } = await heldCollector();
    const release = hold();
    const spans = await loadSpanTracer(
      { url, resource: {}, maxQueueSize: 2, maxExportBatchSize: 1 },
      () => {},
    );
    const triton = new Triton({ extensions: [spans] });
    const double = triton.bind({
      modelName: "double",
      inputs: [{ name: "x", dtype: "INT32", shape: [1] }],
      outputs: [{ name: "y", dtype: "INT32", shape: [1] }],
      config: { batching: false },
      inferFunc: sample(({ x }) => ({ y: x })),
    });
    for (let i = 0; i < 10; i++) await double.inferSample({ x: [i] });
    // Two spans a request: that of the model and that of its execution.
    expect(await serviceOf(triton).metrics()).toContain("tritonjs_trace_lost_total 17\n");
    release();
    await triton.close();
  });
});
