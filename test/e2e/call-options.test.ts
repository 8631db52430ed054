import * as grpcClient from "@tritonjs/client/grpc";
import * as httpClient from "@tritonjs/client/http";
import { type InferOptions, isTimeout, Triton, TritonError } from "@tritonjs/core";
import { grpc } from "@tritonjs/grpc";
import { http } from "@tritonjs/http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

// A model of the tests never answers, so `close` cuts it off.
const triton = new Triton({ exitTimeoutSecs: 0 });
const x = [{ name: "x", dtype: "INT32", shape: [1] }] as const;
const y = [{ name: "y", dtype: "INT32", shape: [1] }] as const;

/** What the callback of `told` was told of its last request. */
let seen: unknown;

const told = triton.bind({
  modelName: "told",
  inputs: x,
  outputs: y,
  inferFunc: (requests) =>
    requests.map(({ inputs, id, priority, parameters, correlationId, sequenceStart, sequenceEnd }) => {
      seen = { id, priority, parameters, sequence: [String(correlationId), sequenceStart, sequenceEnd] };
      return { y: inputs.x };
    }),
  config: { sequence: {} },
});

/** A model that never answers by itself. */
const silent = triton.bind({
  modelName: "silent",
  inputs: x,
  outputs: y,
  inferFunc: async (requests, { signal }) => {
    await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
    return requests.map(({ inputs }) => ({ y: inputs.x }));
  },
  config: { batching: false },
});

/** A model whose requests may say how long they wait in its queue. It answers none of them by itself. */
const queued = triton.bind({
  modelName: "queued",
  inputs: x,
  outputs: y,
  inferFunc: async (requests, { signal }) => {
    await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
    return requests.map(({ inputs }) => ({ y: inputs.x }));
  },
  config: { maxBatchSize: 1, batcher: { defaultQueuePolicy: { allowTimeoutOverride: true } } },
});

const handles = { told, silent, queued };
type Name = keyof typeof handles;

/** A model that calls the one that it is told to call, with options that it is given. */
let forwarded: InferOptions = {};
const caller = triton.bind({
  modelName: "caller",
  inputs: x,
  outputs: y,
  inferFunc: async (requests, context) => {
    const [{ inputs, parameters }] = requests as readonly (typeof requests)[0][] as [(typeof requests)[0]];
    const model = String(parameters.model);
    const given = { x: model === "silent" ? [inputs.x.get(0)] : [[inputs.x.get(0)]] };
    const { y } = await context.infer<{ y: typeof inputs.x }>(model, given, forwarded);
    return requests.map(() => ({ y: [y.data[0]!] }));
  },
  config: { batching: false },
});

function noError(): never {
  throw new Error("the call ended without an error");
}

type Call = (model: Name, options: InferOptions) => Promise<unknown>;
const calls: Record<string, Call> = {
  "the handle of a model": (model, options) => handles[model].inferSample({ x: [1] }, options),
  "infer() by the name of a model": (model, options) =>
    triton.infer(model, { x: model === "silent" ? [1] : [[1]] }, options),
  "a callback": (model, options) => {
    forwarded = options;
    return caller.infer({ x: [1] }, { parameters: { model } });
  },
};

beforeAll(async () => {
  const { addresses } = await triton.serve({ frontends: [http({ port: 0 }), grpc({ port: 0 })] });
  for (const [name, { InferenceServerClient, ModelClient }, url] of [
    ["HTTP", httpClient, addresses.http!.url],
    ["gRPC", grpcClient, addresses.grpc!.url],
  ] as const) {
    const server = new InferenceServerClient(url);
    calls[`the client over ${name}`] = (model, options) => {
      const shape = model === "silent" ? [1] : [1, 1];
      return server.infer(model, { inputs: { x: { datatype: "INT32", shape, data: [1] } }, ...options });
    };
    calls[`the client of one model over ${name}`] = (model, options) =>
      new ModelClient(url, model).inferSample({ x: [1] }, options);
  }
});
afterAll(() => triton.close());

describe.each([
  "the handle of a model",
  "infer() by the name of a model",
  "a callback",
  "the client over HTTP",
  "the client of one model over HTTP",
  "the client over gRPC",
  "the client of one model over gRPC",
])("a call by %s", (name) => {
  it("tells the callback its id, priority, parameters and sequence", async () => {
    const sequence = { id: 7n, start: true, end: true };
    await calls[name]!("told", { id: "r", priority: 1, parameters: { a: "b" }, sequence });
    expect(seen).toEqual({ id: "r", priority: 1, parameters: { a: "b" }, sequence: ["7", true, true] });
  });

  it("times out after timeoutMs milliseconds", async () => {
    const error: TritonError = await calls[name]!("silent", { timeoutMs: 50 }).then(
      noError,
      TritonError.from,
    );
    expect(error.code).toBe("UNAVAILABLE");
    expect(isTimeout(error)).toBe(true);
  });

  it("waits in the queue for queueTimeoutMicroseconds microseconds", async () => {
    const abort = new AbortController();
    const others = Array.from({ length: 5 }, () => queued.inferSample({ x: [1] }, { signal: abort.signal }));
    const error: TritonError = await calls[name]!("queued", { queueTimeoutMicroseconds: 20_000 }).then(
      noError,
      TritonError.from,
    );
    expect(error).toMatchObject({ code: "UNAVAILABLE", message: "Request timeout expired" });
    expect(isTimeout(error)).toBe(true);
    abort.abort();
    await Promise.allSettled(others);
  });

  it("ends with CANCELLED when its signal aborts", async () => {
    const abort = new AbortController();
    const call = calls[name]!("silent", { signal: abort.signal }).catch(({ code }) => code);
    abort.abort();
    expect(await call).toBe("CANCELLED");
  });
});
