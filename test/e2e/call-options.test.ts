import * as grpcClient from "@tritonjs/client/grpc";
import * as httpClient from "@tritonjs/client/http";
import { batch, type InferOptions, isTimeout, type ModelOptions, Triton, TritonError } from "@tritonjs/core";
import { grpc } from "@tritonjs/grpc";
import { http } from "@tritonjs/http";
import { type DeadlineOptions, deadlines } from "@tritonjs/scheduling";
import { type InferenceRequest, VirtualClock } from "@tritonjs/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Client, Way } from "../conformance/clients/client.js";
import { echo, echoInputs, echoOutputs } from "../support/echo-model.js";
import { aborted, HeldModel, heldCall } from "./support/held-model.js";
import { onSent, openTriton, pendingRequests, serveAndConnect, until } from "./support/open-triton.js";

describe("call options", () => {
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
      const others = Array.from({ length: 5 }, () =>
        queued.inferSample({ x: [1] }, { signal: abort.signal }),
      );
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
});

const schedulers: readonly { readonly scheduler: string; readonly config: ModelOptions }[] = [
  { scheduler: "direct scheduler", config: { batching: false } },
  { scheduler: "dynamic batcher", config: { maxBatchSize: 1 } },
];

const ways: readonly Way[] = ["in process", "HTTP JSON", "HTTP binary", "gRPC raw", "gRPC typed"];

const cases = schedulers.flatMap((one) => ways.map((way) => ({ ...one, way })));

async function open(config: ModelOptions, way: Way) {
  const triton = openTriton();
  const held = new HeldModel(triton, config);
  const clients = await serveAndConnect(triton);
  const client = clients.find((one) => one.way === way)!;
  const batched = config.batching !== false;
  const ask = (value: number, signal?: AbortSignal) => client.infer(heldCall(value, batched, signal));
  return { triton, held, client, ask };
}

describe.each(cases)("a client that leaves ($way, $scheduler)", ({ config, way }) => {
  it("aborts the signal of the callback that computes its answer", async () => {
    const { held, ask } = await open(config, way);
    const controller = new AbortController();
    const refused = expect(ask(1, controller.signal)).rejects.toThrow();
    await held.reached(1);
    expect(held.signals[0]!.aborted).toBe(false);
    controller.abort();
    await aborted(held.signals[0]!);
    await refused;
    held.release();
    expect((await ask(5)).outputs[0]!.elements).toEqual([10]);
  });

  it("removes its request from the queue and from memory at once", async () => {
    const { triton, held, client, ask } = await open(config, way);
    const first = ask(1);
    await held.reached(1);
    const controller = new AbortController();
    const waiting = waitingRequest(triton, client);
    const refused = expect(ask(2, controller.signal)).rejects.toThrow();
    const request = await waiting;
    await until(async () => (await pendingRequests(triton, "held")) === 1);
    controller.abort();
    await refused;
    await until(async () => (await pendingRequests(triton, "held")) === 0);
    if (request !== undefined) {
      expect(request.settled).toBe(true);
      expect(request.inputs.size).toBe(0);
    }
    held.release();
    expect((await first).outputs[0]!.elements).toEqual([2]);
    expect((await ask(3)).outputs[0]!.elements).toEqual([6]);
    expect(held.executed).toEqual([1, 3]);
  });
});

/** The next request that a frontend sends to the model. In-process calls do not count. */
function waitingRequest(triton: Triton, { way }: Client): Promise<InferenceRequest | undefined> {
  if (way === "in process") return Promise.resolve(undefined);
  return new Promise((resolve) => onSent(triton, (request) => resolve(request as InferenceRequest)));
}

describe("deadline headers", () => {
  /** Long enough for a client on a busy machine to be refused before its own limit passes. */
  const BATCH_MS = 60_000;

  const clock = new VirtualClock();

  const triton = new Triton({ clock, exitTimeoutSecs: 0 });

  const slow = batch<typeof echoInputs, typeof echoOutputs>(async ({ x }) => {
    await new Promise<void>((done) => clock.setTimer(BATCH_MS, done));
    return { y: x };
  });

  const model = (modelName: string, limits?: DeadlineOptions) =>
    triton.bind({
      modelName,
      inputs: echoInputs,
      outputs: echoOutputs,
      inferFunc: slow,
      config: { maxBatchSize: 1, batcher: limits ? deadlines(limits) : {} },
    });

  const handle = model("timed", {});

  const plain = model("plain");

  const classes = model("classes", {
    defaultMs: 40_000,
    levelMs: { 1: 10_000, 2: 30_000 },
    callerMs: { gold: 20_000 },
  });

  const INPUTS = { x: { datatype: "INT32", shape: [1, 1], data: [7] } } as const;

  let urls: Record<"http" | "grpc", string>;

  beforeAll(async () => {
    const { addresses } = await triton.serve({ frontends: [http({ port: 0 }), grpc({ port: 0 })] });
    urls = { http: addresses.http!.url, grpc: addresses.grpc!.url };
    for (let i = 0; i < 6; i++) await runBoth();
  });

  afterAll(() => triton.close());

  /** Runs a batch of each model, so that what is known of them is fresh. */
  async function runBoth(): Promise<void> {
    const sent = [echo(handle, 1), echo(plain, 1), echo(classes, 1, { timeoutMs: 10 * BATCH_MS })];
    await clock.advance(BATCH_MS);
    await Promise.all(sent);
  }

  /** A client that is closed at the end of its block. */
  function open(protocol: "HTTP" | "gRPC", options: { readonly timeoutMs?: number } = {}) {
    const client =
      protocol === "HTTP"
        ? new httpClient.InferenceServerClient(urls.http, options)
        : new grpcClient.InferenceServerClient(urls.grpc, options);
    return client;
  }

  async function thrownBy(call: Promise<unknown>): Promise<TritonError> {
    return call.then(
      () => expect.unreachable("the call has succeeded"),
      (error: unknown) => TritonError.from(error),
    );
  }

  /** Sends a request over HTTP, and lets time pass until it is answered. */
  async function post(name: string, headers: Record<string, string>, runs = true): Promise<[number, string]> {
    const body = JSON.stringify({ inputs: [{ name: "x", datatype: "INT32", shape: [1, 1], data: [7] }] });
    const response = fetch(`${urls.http}/v2/models/${name}/infer`, {
      method: "POST",
      headers,
      body,
    });
    let done = false;
    void response.finally(() => {
      done = true;
    });
    while (!done) await clock.advance(runs ? BATCH_MS / 4 : 0);
    const answer = await response;
    return [answer.status, await answer.text()];
  }

  describe("the time that a client waits", () => {
    it.each([
      ["tritonjs-timeout-ms", "20000"],
      ["grpc-timeout", "20000m"],
      ["grpc-timeout", "20S"],
    ])("is the deadline of a request over HTTP: %s: %s", async (name, value) => {
      await runBoth();
      const [status, text] = await post("timed", { [name]: value }, false);
      expect(status).toBe(503);
      expect(text).toContain("was refused: expected an answer within 20000 ms, got an estimate of 60000 ms");
      expect((await post("timed", { [name]: value.replace("20", "90000") }))[0]).toBe(200);
    });

    it("is over at once with grpc-timeout: 0m", async () => {
      await runBoth();
      const [status, text] = await post("timed", { "grpc-timeout": "0m" }, false);
      expect(status).toBe(503);
      expect(text).toContain("was refused: expected an answer within 0 ms");
    });

    it("is ignored by models without deadlines, as in Triton", async () => {
      expect((await post("plain", { "tritonjs-timeout-ms": "1", "grpc-timeout": "nonsense" }))[0]).toBe(200);
    });

    it.each([
      ["tritonjs-timeout-ms", "soon", "expected a number of milliseconds above 0, got 'soon'"],
      ["grpc-timeout", "5", "expected up to 8 digits and a unit of H, M, S, m, u or n, got '5'"],
    ])("must be a time: %s: %s", async (name, value, why) => {
      const [status, text] = await post("timed", { [name]: value });
      expect(status).toBe(400);
      expect(text).toContain(`header '${name}': ${why}`);
    });

    it.each([
      ["HTTP", "a call", {}, { timeoutMs: 20_000 }],
      ["HTTP", "a client", { timeoutMs: 20_000 }, {}],
      ["gRPC", "a call", {}, { timeoutMs: 20_000 }],
      ["gRPC", "a client", { timeoutMs: 20_000 }, {}],
    ] as const)(
      "is the timeoutMs of our client over %s, as an option of %s",
      async (protocol, _, ofClient, ofCall) => {
        await runBoth();
        await using client = open(protocol, ofClient);
        const error = await thrownBy(client.infer("timed", { inputs: INPUTS, ...ofCall }));
        expect(error.message).toMatch(
          /was refused: expected an answer within \d+ ms, got an estimate of 60000 ms/,
        );
        // What is left of the limit when the request goes out.
        const left = Number(/within (\d+) ms/.exec(error.message)![1]);
        expect(left).toBeGreaterThan(0);
        expect(left).toBeLessThanOrEqual(20_000);
      },
    );

    it("of a call that goes on is over at the client as before", async () => {
      const requests: Headers[] = [];
      const fetch: typeof globalThis.fetch = (url, init) => {
        requests.push(new Headers(init?.headers));
        return globalThis.fetch(url, init);
      };
      const client = new httpClient.InferenceServerClient(urls.http, { fetch });
      const error = await thrownBy(client.infer("plain", { inputs: INPUTS, timeoutMs: 40 }));
      expect(error.message).toBe("the server did not answer within 40 ms");
      await thrownBy(client.infer("unknown", { inputs: INPUTS }));
      const given = { "tritonjs-timeout-ms": "7" };
      await thrownBy(client.infer("unknown", { inputs: INPUTS, timeoutMs: 40_000, headers: given }));
      const [told, byDefault, header] = requests.map((headers) => headers.get("tritonjs-timeout-ms"));
      expect(Number(told)).toBeGreaterThan(0);
      expect(Number(told)).toBeLessThanOrEqual(40);
      expect([byDefault, header]).toEqual([null, "7"]);
      client.close();
      await runBoth();
    });
  });

  /** The model's callers and classes have limits of their own. */
  describe("the default deadline", () => {
    const limits = [
      ["gold", 0, 20_000],
      ["gold", 2, 20_000],
      ["other", 2, 30_000],
      ["", 1, 10_000],
      ["", 0, 40_000],
    ] as const;
    const refused = (limitMs: number) => `was refused: expected an answer within ${limitMs} ms`;

    it.each(limits)("of caller '%s' at level %i is %i ms: HTTP", async (caller, priority, limitMs) => {
      await runBoth();
      await using client = open("HTTP");
      const headers = { "tritonjs-caller": caller };
      const error = await thrownBy(client.infer("classes", { inputs: INPUTS, headers, priority }));
      expect(error.message).toContain(refused(limitMs));
    });

    it.each(limits)("of caller '%s' at level %i is %i ms: gRPC", async (caller, priority, limitMs) => {
      await runBoth();
      await using client = new grpcClient.InferenceServerClient(urls.grpc);
      const headers = { "tritonjs-caller": caller };
      const error = await thrownBy(client.infer("classes", { inputs: INPUTS, headers, priority }));
      expect(error.message).toContain(refused(limitMs));
      const answers = client.streamInfer([{ modelName: "classes", inputs: INPUTS, priority }], { headers });
      const { value } = await answers.next();
      expect(value?.error?.message).toContain(refused(limitMs));
    });

    it.each(limits)("of caller '%s' at level %i is %i ms: in process", async (caller, priority, limitMs) => {
      await runBoth();
      const error = await thrownBy(echo(classes, 1, { parameters: { caller }, priority }));
      expect(error.message).toContain(refused(limitMs));
    });

    it("counts less than the limit of a call", async () => {
      await runBoth();
      const error = await thrownBy(echo(classes, 1, { parameters: { caller: "gold" }, timeoutMs: 5_000 }));
      expect(error.message).toContain(refused(5_000));
    });

    it("holds for requests to generate", async () => {
      await runBoth();
      const response = await fetch(`${urls.http}/v2/models/classes/generate`, {
        method: "POST",
        headers: { "tritonjs-caller": "gold" },
        body: JSON.stringify({ x: [[7]] }),
      });
      expect(response.status).toBe(503);
      expect(await response.text()).toContain(refused(20_000));
    });
  });
});
