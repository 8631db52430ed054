import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { context, propagation, SpanKind, SpanStatusCode, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { W3CTraceContextPropagator } from "@opentelemetry/core";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { resourceFromAttributes } from "@opentelemetry/resources";
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from "@opentelemetry/sdk-metrics";
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
  TracerProvider,
} from "@opentelemetry/sdk-trace";
import { InferenceServerClient as GrpcClient, InferenceServerClient } from "@tritonjs/client/grpc";
import { InferenceServerClient as HttpClient } from "@tritonjs/client/http";
import { batch, sample, Tensor, TritonError, type TritonOptions } from "@tritonjs/core";
import { metrics } from "@tritonjs/http";
import { textGenerator } from "@tritonjs/llm";
import { openai } from "@tritonjs/llm/openai";
import { type OpenTelemetryOptions, openTelemetry, traceHeaders } from "@tritonjs/operations/opentelemetry";
import type { Parameters } from "@tritonjs/protocol";
import { serviceOf } from "@tritonjs/server";
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { echo, echoInputs, echoOutputs } from "../support/echo-model.js";
import { sendRequest } from "../support/send-request.js";
import { openTriton, until } from "./support/open-triton.js";

describe("opentelemetry", () => {
  const spans = new InMemorySpanExporter();

  const provider = new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter: spans })] });

  const app = provider.getTracer("app");

  beforeAll(() => {
    trace.setGlobalTracerProvider(provider);
    context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
    propagation.setGlobalPropagator(new W3CTraceContextPropagator());
  });

  afterAll(async () => {
    trace.disable();
    context.disable();
    propagation.disable();
    await provider.shutdown();
  });

  beforeEach(() => spans.reset());

  const named = (name: string): ReadableSpan => {
    const found = spans.getFinishedSpans().find((span) => span.name === name);
    if (found === undefined) throw new Error(`no span '${name}'`);
    return found;
  };

  const idOf = (span: ReadableSpan) => span.spanContext().spanId;

  const parentOf = (name: string) => named(name).parentSpanContext?.spanId;

  const traceOf = (name: string) => named(name).spanContext().traceId;

  function tracedTriton(options: OpenTelemetryOptions = {}, further: TritonOptions = {}) {
    return openTriton({ extensions: [openTelemetry(options)], ...further });
  }

  const model = (modelName: string) => ({ modelName, inputs: echoInputs, outputs: echoOutputs });

  describe("spans in the program's own tracer provider", () => {
    it("are children of the active span, and parents of what callbacks and called models do", async () => {
      const triton = tracedTriton();
      triton.bind({
        ...model("inner"),
        inferFunc: batch(({ x }) => {
          app.startSpan("in inner").end();
          return { y: x };
        }),
      });
      const outer = triton.bind({
        ...model("outer"),
        config: { batching: false },
        inferFunc: sample(async ({ x }, { infer }) => {
          app.startSpan("in outer").end();
          await infer("inner", { x: [[1]] });
          return { y: x };
        }),
      });
      await app.startActiveSpan("request of the app", async (span) => {
        await outer.infer({ x: [1] }, { id: "seven" });
        span.end();
      });
      expect(parentOf("outer")).toBe(idOf(named("request of the app")));
      expect(parentOf("in outer")).toBe(idOf(named("outer")));
      expect(parentOf("inner")).toBe(idOf(named("outer")));
      expect(parentOf("in inner")).toBe(idOf(named("inner")));
      expect(parentOf("compute")).toBe(idOf(named("inner")));
      expect(named("outer").attributes).toMatchObject({
        "triton.model_name": "outer",
        "triton.model_version": 1,
        "triton.request_id": "seven",
      });
      expect(named("inner").attributes).toMatchObject({
        "tritonjs.batch.size": 1,
        "tritonjs.batch.cut": "INSTANCE",
        "tritonjs.batch.instance": "inner_0",
      });
      expect(spans.getFinishedSpans().some(({ name }) => name === "InferRequest")).toBe(false);
    });

    it("are the active ones in each step of an ensemble", async () => {
      const triton = tracedTriton();
      triton.bind({
        ...model("step"),
        inferFunc: sample(({ x }) => {
          app.startSpan("in step").end();
          return { y: x };
        }),
        config: { batching: false },
      });
      const whole = triton.bindEnsemble({
        ...model("whole"),
        config: { batching: false },
        steps: [{ modelName: "step", inputMap: { x: "x" }, outputMap: { y: "y" } }],
      });
      await whole.infer({ x: [1] });
      expect(parentOf("in step")).toBe(idOf(named("step")));
      expect(parentOf("step")).toBe(idOf(named("whole")));
    });

    it("have the status, the error type and the time of a request that fails or is refused", async () => {
      const triton = tracedTriton();
      const handle = triton.bind({
        ...model("broken"),
        config: { batching: false },
        inferFunc: sample(() => {
          throw new Error("no");
        }),
      });
      await expect(handle.infer({ x: [1] })).rejects.toThrow("no");
      expect(named("broken").status).toEqual({ code: SpanStatusCode.ERROR, message: "no" });
      expect(named("broken").attributes["error.type"]).toBeTypeOf("string");
      spans.reset();
      const response = await fetch(`${(await triton.serve()).addresses.http!.url}/v2/models/broken/infer`, {
        method: "POST",
        body: '{"inputs":[]}',
      });
      expect(response.status).toBe(400);
      await until(() => spans.getFinishedSpans().length > 1);
      expect(named("broken").status.code).toBe(SpanStatusCode.ERROR);
      // By the conventions, mistakes of clients are not errors of the server.
      expect(named("InferRequest").status.code).toBe(SpanStatusCode.UNSET);
      expect(named("InferRequest").attributes["http.response.status_code"]).toBe(400);
    });

    it("have the attributes of HTTP and gRPC servers, with the status of the answer", async () => {
      const triton = tracedTriton();
      triton.bind({
        ...model("attributed"),
        config: { batching: false },
        inferFunc: sample(({ x }) => {
          if (x.data[0]! < 0) throw new Error("negative");
          return { y: x };
        }),
      });
      await triton.ready();
      const { addresses } = await triton.serve();
      const { port } = new URL(addresses.http!.url);
      await using overHttp = new HttpClient(addresses.http!.url);
      await using overGrpc = new GrpcClient(addresses.grpc!.url);
      const span = async (client: HttpClient | GrpcClient, value: number) => {
        spans.reset();
        await client.infer("attributed", { inputs: { x: Int32Array.of(value) } }).catch(() => {});
        await until(() => spans.getFinishedSpans().some(({ name }) => name === "InferRequest"));
        return named("InferRequest");
      };
      const http = {
        "network.protocol.name": "http",
        "http.request.method": "POST",
        "http.route": "/v2/models/{model}/infer",
        "url.path": "/v2/models/attributed/infer",
        "url.scheme": "http",
        "server.address": "localhost",
        "server.port": Number(port),
        "user_agent.original": "node",
      };
      const succeeded = await span(overHttp, 1);
      expect(succeeded.attributes).toMatchObject({ ...http, "http.response.status_code": 200 });
      expect(succeeded.attributes["client.address"]).toMatch(/127\.0\.0\.1|::1/);
      const failed = await span(overHttp, -1);
      expect(failed.attributes).toMatchObject({ ...http, "http.response.status_code": 500 });
      expect(failed.status.code).toBe(SpanStatusCode.ERROR);

      const rpc = {
        "network.protocol.name": "grpc",
        "rpc.system.name": "grpc",
        "rpc.method": "inference.GRPCInferenceService/ModelInfer",
      };
      const answered = await span(overGrpc, 1);
      expect(answered.attributes).toMatchObject({ ...rpc, "rpc.response.status_code": "OK" });
      expect(answered.status.code).toBe(SpanStatusCode.UNSET);
      const broken = await span(overGrpc, -1);
      expect(broken.attributes).toMatchObject({ ...rpc, "rpc.response.status_code": "INTERNAL" });
      expect(broken.status.code).toBe(SpanStatusCode.ERROR);
    });

    it("continue the trace of a client over HTTP and gRPC, as far as a worker and Python see it", async () => {
      const triton = tracedTriton();
      const handle = triton.bind({
        ...model("remote"),
        config: { maxBatchSize: 4 },
        inferFunc: new URL(
          "../../packages/core/test/behaviours/fixtures/shows-traceparent.mjs",
          import.meta.url,
        ),
      });
      await handle.ready();
      const { addresses } = await triton.serve();
      for (const client of [
        new HttpClient(addresses.http!.url),
        new GrpcClient(addresses.grpc!.url),
        new GrpcClient(addresses.grpc!.url, { traceContext: false, headers: traceHeaders }),
      ]) {
        spans.reset();
        const result = await app.startActiveSpan("client", async (span) => {
          const answer = await client.infer("remote", {
            inputs: { x: { data: Int32Array.of(1), shape: [1, 1] } } as never,
          });
          span.end();
          return answer;
        });
        await client.close();
        await until(() => spans.getFinishedSpans().some(({ name }) => name === "InferRequest"));
        expect(parentOf("InferRequest")).toBe(idOf(named("client")));
        expect(named("InferRequest").kind).toBe(SpanKind.SERVER);
        expect(parentOf("remote")).toBe(idOf(named("InferRequest")));
        expect(traceOf("remote")).toBe(traceOf("client"));
        expect(result.parameters?.traceparent).toBe(`00-${traceOf("client")}-${idOf(named("remote"))}-01`);
      }
    });

    it("do not continue the trace of a client that keeps it to itself", async () => {
      const triton = tracedTriton();
      const handle = triton.bind({ ...model("private"), inferFunc: batch(({ x }) => ({ y: x })) });
      await handle.ready();
      const { addresses } = await triton.serve();
      for (const client of [
        new HttpClient(addresses.http!.url, { traceContext: false }),
        new GrpcClient(addresses.grpc!.url, { traceContext: false }),
        new HttpClient(addresses.http!.url, { headers: { traceparent: "none" } }),
      ]) {
        spans.reset();
        await app.startActiveSpan("client", async (span) => {
          await client.infer("private", {
            inputs: { x: { data: Int32Array.of(1), shape: [1, 1] } } as never,
          });
          span.end();
        });
        await client.close();
        await until(() => spans.getFinishedSpans().some(({ name }) => name === "InferRequest"));
        expect(parentOf("InferRequest")).toBeUndefined();
      }
    });

    it("leave the headers of fetch to an instrumentation that observes it", async () => {
      const seen: (string | null)[] = [];
      const client = new HttpClient("http://localhost:1", {
        fetch: async (_, init) => {
          seen.push(new Headers(init?.headers).get("traceparent"));
          return new Response(null, { status: 200 });
        },
      });
      const ask = () => app.startActiveSpan("client", () => client.isServerLive());
      await ask();
      const observe = () => {};
      subscribe("undici:request:create", observe);
      await ask();
      unsubscribe("undici:request:create", observe);
      await client.close();
      expect(seen).toEqual([expect.stringMatching(/^00-/), null]);
    });

    it("are parents of the spans that a worker starts, for its batch and for each request", async () => {
      const triton = tracedTriton();
      const handle = triton.bind({
        ...model("working"),
        config: {
          maxBatchSize: 2,
          batcher: { maxQueueDelayMicroseconds: 10_000_000, preferredBatchSize: [2] },
        },
        inferFunc: new URL(
          "../../packages/core/test/behaviours/fixtures/traces-in-a-worker.mjs",
          import.meta.url,
        ),
      });
      await handle.ready();
      const requests = [1, 2].map((value) => {
        const inputs = new Map([["x", Tensor.fromElements("INT32", [1, 1], Int32Array.of(value))]]);
        const trace = serviceOf(triton).tracing?.sample("working");
        return new Promise<Parameters | undefined>((resolve, reject) =>
          sendRequest(serviceOf(triton).model("working", ""), { inputs, trace }, (answer) => {
            trace?.release();
            if (TritonError.is(answer)) reject(answer);
            else resolve(answer?.parameters);
          }),
        );
      });
      const answers = await Promise.all(requests);
      await until(() => spans.getFinishedSpans().filter(({ name }) => name === "working").length === 2);
      const placeOf = (span: ReadableSpan) => `${span.spanContext().traceId} ${idOf(span)}`;
      const [first, second] = spans.getFinishedSpans().filter(({ name }) => name === "working");
      expect(answers).toEqual([
        { batch: placeOf(first!), own: placeOf(first!) },
        { batch: placeOf(first!), own: placeOf(second!) },
      ]);
    });

    it("exist only for requests of other traces when the rate is 0", async () => {
      const triton = tracedTriton({}, { trace: { rate: 0 } });
      const handle = triton.bind({ ...model("rare"), inferFunc: batch(({ x }) => ({ y: x })) });
      await echo(handle, 1);
      expect(spans.getFinishedSpans()).toHaveLength(0);
      await app.startActiveSpan("mine", async (span) => {
        await echo(handle, 1);
        span.end();
      });
      expect(parentOf("rare")).toBe(idOf(named("mine")));
    });

    it("follow the conventions for generative AI where a model generates text", async () => {
      const triton = tracedTriton({ textGenerators: { llm: { operation: "chat", provider: "local" } } });
      const handle = triton.bind({ ...model("llm"), inferFunc: batch(({ x }) => ({ y: x })) });
      await echo(handle, 1, { parameters: { max_tokens: 16, temperature: 0.5 } });
      expect(named("chat llm").attributes).toMatchObject({
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "local",
        "gen_ai.request.model": "llm",
        "gen_ai.request.max_tokens": 16,
        "gen_ai.request.temperature": 0.5,
      });
    });

    it("count the tokens that a text generator tells, and the time to its first response", async () => {
      const triton = tracedTriton({ textGenerators: { writer: {} } });
      const handle = triton.bind({ ...writer, modelName: "writer" });
      await handle.ready();
      for await (const _ of handle.stream({ x: [1] }));
      await until(() => spans.getFinishedSpans().some(({ name }) => name === "text_completion writer"));
      const { attributes } = named("text_completion writer");
      expect(attributes).toMatchObject({ "gen_ai.usage.input_tokens": 5, "gen_ai.usage.output_tokens": 7 });
      expect(attributes["gen_ai.response.time_to_first_chunk"]).toBeGreaterThanOrEqual(0);
      expect(attributes["gen_ai.response.time_to_first_chunk"]).toBeLessThan(60);
    });
  });

  describe("a chat over OpenAI", () => {
    it("continues the client's trace, with the sampling and the tokens of the generator", async () => {
      const triton = tracedTriton({ textGenerators: { storyteller: { operation: "chat" } } });
      triton.bind({
        modelName: "storyteller",
        inferFunc: textGenerator(async function* () {
          yield "Once ";
          yield { text: "upon", usage: { promptTokens: 3 } };
        }),
      });
      const { addresses } = await triton.serve({ frontends: [openai({ port: 0 })] });
      const caller = { trace: "0af7651916cd43dd8448eb211c80319c", span: "b7ad6b7169203331" };
      for (const stream of [false, true]) {
        spans.reset();
        const response = await fetch(`${addresses.openai!.url}/v1/chat/completions`, {
          method: "POST",
          headers: { traceparent: `00-${caller.trace}-${caller.span}-01` },
          body: JSON.stringify({
            model: "storyteller",
            stream,
            max_tokens: 16,
            temperature: 0.5,
            messages: [{ role: "user", content: "Tell" }],
          }),
        });
        await response.text();
        await until(() => spans.getFinishedSpans().some(({ name }) => name === "InferRequest"));
        expect(named("chat storyteller").attributes).toMatchObject({
          "gen_ai.operation.name": "chat",
          "gen_ai.request.max_tokens": 16,
          "gen_ai.request.temperature": 0.5,
          "gen_ai.usage.input_tokens": 3,
          "gen_ai.usage.output_tokens": 2,
          "triton.request_id": response.headers.get("x-request-id"),
        });
        expect(parentOf("chat storyteller")).toBe(idOf(named("InferRequest")));
        expect(named("InferRequest").parentSpanContext?.spanId).toBe(caller.span);
        expect(traceOf("chat storyteller")).toBe(caller.trace);
        expect(named("InferRequest").attributes["http.response.status_code"]).toBe(200);
      }
    });
  });

  /** A model with three responses, which tell 5 input tokens and 7 output tokens. */
  const writer = {
    inputs: echoInputs,
    outputs: [
      { name: "num_input_tokens", dtype: "UINT32", shape: [1] },
      { name: "num_output_tokens", dtype: "UINT32", shape: [1] },
    ],
    async *inferFunc() {
      for (const tokens of [1, 2, 4])
        yield [{ num_input_tokens: Uint32Array.of(5), num_output_tokens: Uint32Array.of(tokens) }];
    },
    config: { batching: false, decoupled: true },
  } as const;

  it("meters count requests and batches of the program's meter provider", async () => {
    const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
    const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 });
    const meters = new MeterProvider({ readers: [reader] });
    const triton = tracedTriton({ meters, textGenerators: { metered: {}, writing: {} } });
    const handle = triton.bind({
      ...model("metered"),
      inferFunc: batch(({ x }) => ({ y: x })),
      config: { maxBatchSize: 4 },
    });
    await Promise.all([echo(handle, 1), echo(handle, 2)]);
    const writing = triton.bind({ ...writer, modelName: "writing" });
    await writing.ready();
    for await (const _ of writing.stream({ x: [1] }));
    await meters.forceFlush();
    const metrics = exporter
      .getMetrics()
      .flatMap(({ scopeMetrics }) => scopeMetrics.flatMap(({ metrics }) => metrics));
    const points = Object.fromEntries(
      metrics.map(({ descriptor, dataPoints }) => [descriptor.name, dataPoints[0]!]),
    );
    const all = (wanted: string) =>
      metrics.find(({ descriptor }) => descriptor.name === wanted)?.dataPoints ?? [];
    expect(points["tritonjs.request.duration"]).toMatchObject({
      attributes: { "triton.model_name": "metered", "triton.model_version": "1" },
      value: { count: 2 },
    });
    expect(points["tritonjs.request.active"]!.value).toBe(0);
    expect(points["tritonjs.batch.size"]).toMatchObject({
      attributes: { "tritonjs.batch.cut": "INSTANCE" },
      value: { count: 1, sum: 2 },
    });
    expect(points["tritonjs.batch.duration"]!.value).toMatchObject({ count: 1 });
    expect(points["gen_ai.server.request.duration"]).toMatchObject({
      attributes: { "gen_ai.operation.name": "text_completion" },
      value: { count: 2 },
    });
    // Of both generators; only the second one has more than one response.
    const counts = (name: string) =>
      all(name).map(({ attributes, value }) => [
        attributes["gen_ai.request.model"],
        (value as { count: number }).count,
      ]);
    expect(counts("gen_ai.server.time_to_first_token")).toEqual([
      ["metered", 2],
      ["writing", 1],
    ]);
    expect(counts("gen_ai.server.time_per_output_token")).toEqual([["writing", 1]]);
    await meters.shutdown();
  });

  it.each([
    ["is an exemplar if the sampler keeps it", new AlwaysOnSampler(), 1],
    ["is not an exemplar if the sampler drops it", new AlwaysOffSampler(), 0],
  ])("the trace of a request %s", async (_what, sampler, exemplars) => {
    const triton = tracedTriton({ tracerProvider: new TracerProvider({ sampler }) });
    const handle = triton.bind({ ...model("m"), inferFunc: batch(({ x }) => ({ y: x })) });
    const { addresses } = await triton.serve({ frontends: [metrics({ port: 0 })] });
    await handle.inferBatch({ x: [[1]] });
    const headers = { accept: "application/openmetrics-text" };
    const page = await (await fetch(`${addresses.metrics!.url}/metrics`, { headers })).text();
    expect(page).toContain('tritonjs_request_duration_seconds_count{model="m",version="1"} 1');
    expect(page.match(/# {trace_id="/g) ?? []).toHaveLength(exemplars);
  });
});

const traceId = "0af7651916cd43dd8448eb211c80319c";

const traceparent = `00-${traceId}-b7ad6b7169203331-01`;

describe("the context of traces", () => {
  it("a request with a traceparent becomes part of that trace, over HTTP and gRPC", async () => {
    const names: string[] = [];
    const collector = createServer(async (request, response) => {
      let text = "";
      for await (const chunk of request) text += chunk;
      const [{ scopeSpans }] = JSON.parse(text).resourceSpans;
      for (const span of scopeSpans[0].spans) {
        if (span.traceId === traceId)
          names.push(span.name, ...span.events.map(({ name }: { name: string }) => name));
      }
      response.end();
    });
    collector.listen(0);
    await once(collector, "listening");
    onTestFinished(() => void collector.close());
    const url = `http://localhost:${(collector.address() as AddressInfo).port}`;

    const provider = new TracerProvider({
      resource: resourceFromAttributes({ "service.name": "vision" }),
      spanProcessors: [new BatchSpanProcessor({ exporter: new OTLPTraceExporter({ url }) })],
    });
    const propagator = new W3CTraceContextPropagator();
    const triton = openTriton({
      trace: { rate: 0 },
      extensions: [openTelemetry({ tracerProvider: provider, propagator })],
    });
    triton.bind({
      modelName: "m",
      inputs: [{ name: "x", dtype: "INT32", shape: [1] }],
      outputs: [{ name: "y", dtype: "INT32", shape: [1] }],
      config: { batching: false },
      inferFunc: sample(({ x }) => ({ y: x })),
    });
    const { addresses } = await triton.serve();
    const infer = async (headers: Record<string, string>) => {
      const body = '{"inputs":[{"name":"x","datatype":"INT32","shape":[1],"data":[1]}]}';
      const answer = await fetch(`${addresses.http!.url}/v2/models/m/infer`, {
        method: "POST",
        body,
        headers,
      });
      return answer.json();
    };
    await infer({});
    await infer({ Traceparent: traceparent });
    const client = new InferenceServerClient(addresses.grpc!.url);
    await client.infer("m", { inputs: { x: Int32Array.of(1) }, headers: { traceparent } });
    await client.close();
    const scraped = await fetch(`${addresses.metrics!.url}/metrics`, {
      headers: { accept: "application/openmetrics-text" },
    });
    expect(scraped.headers.get("content-type")).toContain("application/openmetrics-text; version=1.0.0");
    expect(await scraped.text()).toMatch(
      new RegExp(
        `^tritonjs_request_duration_seconds_bucket.*} \\d+ # {trace_id="${traceId}"} [0-9.e-]+ `,
        "m",
      ),
    );
    await triton.close();
    await provider.shutdown();

    const happened = ["REQUEST_START", "QUEUE_START", "REQUEST_END"];
    const computed = ["COMPUTE_START", "COMPUTE_INPUT_END", "COMPUTE_OUTPUT_START", "COMPUTE_END"];
    const http = [
      "HTTP_RECV_START",
      "HTTP_RECV_END",
      "INFER_RESPONSE_COMPLETE",
      "HTTP_SEND_START",
      "HTTP_SEND_END",
    ];
    const grpc = ["GRPC_WAITREAD_START", "GRPC_WAITREAD_END", "INFER_RESPONSE_COMPLETE", "GRPC_SEND_START"];
    // The spans of a request end from the inside to the outside.
    const inner = ["compute", ...computed, "m", ...happened];
    expect(names).toEqual([
      ...[...inner, "InferRequest", ...http],
      ...[...inner, "InferRequest", ...grpc, "GRPC_SEND_END"],
    ]);
  });
});
