import type { DataType, Triton } from "@tritonjs/core";
import ndarray from "ndarray";
import { describe, expect, expectTypeOf, it, onTestFinished, vi } from "vitest";
import { InferenceServerClient, ModelClient, type ModelClientOptions } from "../../src/http/index.js";
import { fakeFetch, json } from "./support/fake-fetch.js";
import { answer, config, failure } from "./support/int-model.js";
import { bindIdentity, deadUrl, serve, serveByHand } from "./support/serve.js";

const inputs = [
  { name: "a", dtype: "FP32", shape: [2] },
  { name: "b", dtype: "FP32", shape: [-1], optional: true },
] as const;

const outputs = [{ name: "sum", dtype: "FP32", shape: [2] }] as const;

/** Adds the two numbers of `b` to those of `a`, row by row. */
function bindSum(triton: Triton): void {
  triton.bind({
    modelName: "sum",
    inputs,
    outputs,
    inferFunc: (requests) =>
      requests.map(({ inputs: { a, b } }) => {
        const sum = new Float32Array(a.shape[0]! * 2);
        for (let i = 0; i < sum.length; i++) sum[i] = a.data[a.offset + i]! + (b ? b.data[b.offset + i]! : 0);
        return { sum: ndarray(sum, [a.shape[0]!, 2]) };
      }),
    config: { maxBatchSize: 4 },
  });
}

async function sumClient(options: ModelClientOptions = {}) {
  return new ModelClient<typeof inputs, typeof outputs>(await serve(bindSum), "sum", options);
}

describe("model client", () => {
  it("ModelClient without a batch axis sends samples unchanged and rejects batches", async () => {
    const url = await serve((triton) => bindIdentity(triton, "m", "INT32", [2]));
    await using client = new ModelClient(url, "m", { modelVersion: 1, lazyInit: false });
    expect((await client.inferSample({ IN: [1, 2] })).OUT!.shape).toEqual([2]);
    expect(await client.isBatchingSupported()).toBe(false);
    expect(await failure(client.inferBatch({ IN: [[1, 2]] }))).toMatchObject({
      code: "INVALID_ARG",
      message: "model 'm' does not support batching: use inferSample()",
    });
  });

  it("ModelClient rejects decoupled models", async () => {
    const decoupled = { ...config, model_transaction_policy: { decoupled: true } };
    const { fetch, sent } = fakeFetch(json({}), json(decoupled));
    const client = new ModelClient("host:1", "m", { fetch });
    const error = await failure(client.inferSample({ IN: [1] }));
    expect(error).toMatchObject({
      code: "UNSUPPORTED",
      message: expect.stringContaining("use DecoupledModelClient"),
    });
    expect(sent).toHaveLength(2);
  });

  it("ModelClient handles every data type", async () => {
    const samples: Partial<Record<DataType, unknown>> = {
      BOOL: [true, false],
      INT64: [1, 2n ** 60n],
      UINT8: Uint8Array.of(1, 2),
      FP16: [0.5, 1],
      BYTES: ["a", Uint8Array.of(0)],
    };
    for (const [datatype, value] of Object.entries(samples)) {
      const url = await serve((triton) => bindIdentity(triton, "m", datatype as DataType, [2]));
      await using client = new ModelClient(url, "m");
      const { OUT } = await client.inferSample({ IN: value as number[] });
      expect(OUT!.data).toHaveLength(2);
    }
  });

  it("ModelClient reads the configuration once for all calls", async () => {
    const { fetch, sent } = fakeFetch(json({}), json(config), json(answer));
    const client = new ModelClient("host:1", "m", { fetch, modelVersion: 2, accessToken: "secret" });
    expect(sent).toHaveLength(0);
    await Promise.all([1, 2, 3].map((i) => client.inferSample({ IN: [i] })));
    expect(sent.map(({ url }) => url.slice("http://host:1/v2/models/m/versions/2/".length))).toEqual([
      "ready",
      "config",
      "infer",
      "infer",
      "infer",
    ]);
    expect(sent.every(({ headers }) => headers.get("triton-access-token") === "secret")).toBe(true);
  });

  it("ModelClient reads the configuration at once with lazyInit: false", () => {
    const { fetch, sent } = fakeFetch(json({}), json(config));
    new ModelClient("host:1", "m", { fetch, lazyInit: false });
    expect(sent).toHaveLength(1);
  });

  it("ModelClient reads the configuration again after a failure and after loading the model", async () => {
    const { fetch, sent } = fakeFetch(
      json({}),
      json({}, 500),
      json({}),
      json(config),
      json({}),
      json({}),
      json(config),
    );
    const client = new ModelClient("host:1", "m", { fetch });
    expect(await failure(client.modelConfig())).toMatchObject({ code: "INTERNAL" });
    expect(await client.modelConfig()).toEqual(config);
    await client.loadModel({ config: {} });
    await client.modelConfig();
    await client.unloadModel();
    expect(sent.map(({ url }) => url.split("/").at(-1))).toEqual([
      "ready",
      "config",
      "ready",
      "config",
      "load",
      "ready",
      "config",
      "unload",
    ]);
  });

  it("ModelClient sends the options of a call", async () => {
    const { fetch, sent } = fakeFetch(json({}), json(config), json(answer));
    const client = new ModelClient("host:1", "m", { fetch, binary: false });
    await client.inferSample({ IN: [1] }, { parameters: { k: 1 }, headers: { "x-a": "b" }, id: "r" });
    expect(JSON.parse(sent[2]!.body)).toMatchObject({
      id: "r",
      parameters: { k: 1 },
      inputs: [{ data: [1] }],
    });
    expect(sent[2]!.headers.get("x-a")).toBe("b");
  });

  it.each([
    ["no inputs", {}],
    ["odd data types", { ...config, input: [{ name: "IN", data_type: "TYPE_X", dims: [1] }] }],
  ])("ModelClient rejects a configuration with %s", async (_case, odd) => {
    const { fetch } = fakeFetch(json({}), json(odd));
    const error = await failure(new ModelClient("host:1", "m", { fetch }).modelConfig());
    expect(error.code).toBe("INTERNAL");
  });
});

describe("ModelClient with a batch axis", () => {
  it("sends a sample as one row and returns its result without the axis", async () => {
    await using client = await sumClient();
    const { sum } = await client.inferSample({ a: [1, 2] });
    expectTypeOf(sum.data).toEqualTypeOf<Float32Array>();
    expect([sum.shape, [...sum.data]]).toEqual([[2], [1, 2]]);
    expect(await client.isBatchingSupported()).toBe(true);
    expect((await client.modelConfig()).max_batch_size).toBe(4);
  });

  it("sends a batch unchanged", async () => {
    await using client = await sumClient();
    const { sum } = await client.inferBatch({
      a: ndarray(Float32Array.of(1, 2, 3, 4), [2, 2]),
      b: [
        [10, 20],
        [30, 40],
      ],
    });
    expect([sum.shape, [...sum.data]]).toEqual([
      [2, 2],
      [11, 22, 33, 44],
    ]);
  });
});

describe("ModelClient checks inputs before sending them and", () => {
  it.each<[string, "inferSample" | "inferBatch", Record<string, unknown>, string]>([
    ["unknown inputs", "inferSample", { a: [1, 2], x: 1 }, "model 'sum' has no input 'x': expected 'a', 'b'"],
    ["missing inputs", "inferSample", { b: [1, 2] }, "model 'sum': missing input 'a'"],
    ["no inputs", "inferSample", {}, "missing input 'a'"],
    ["a wrong element", "inferSample", { a: [1, "2"] }, "input 'a' of model 'sum' (FP32): expected a number"],
    ["a wrong shape", "inferSample", { a: [1, 2, 3] }, "expected shape [2] of one sample, got [3]"],
    [
      "a sample as a batch",
      "inferBatch",
      { a: [1, 2] },
      "expected shape [-1,2] with the batch axis, got [2]: use inferSample() for one sample",
    ],
    [
      "a batch as a sample",
      "inferSample",
      { a: [[1, 2]] },
      "expected shape [2] of one sample, got [1,2]: use inferBatch() for a batch",
    ],
    ["a wrong array", "inferSample", { a: Float64Array.of(1, 2) }, "expected Float32Array, got Float64Array"],
    [
      "too many rows",
      "inferBatch",
      { a: Array(5).fill([1, 2]) },
      "batch of model 'sum': expected at most 4 rows, got 5",
    ],
    [
      "batches of two sizes",
      "inferBatch",
      { a: [[1, 2]], b: [[1], [2]] },
      "expected equal batch sizes, got 1 of 'a' and 2 of 'b'",
    ],
  ])("rejects %s", async (_case, method, values, message) => {
    const sum = {
      name: "sum",
      max_batch_size: 4,
      input: [
        { name: "a", data_type: "TYPE_FP32", dims: [2] },
        { name: "b", data_type: "TYPE_FP32", dims: [-1], optional: true },
      ],
      output: [],
    };
    const { fetch, sent } = fakeFetch(json({}), json(sum));
    const client = new ModelClient("host:1", "sum", { fetch });
    const error = await failure(client[method](values as Record<string, number[]>));
    expect(error.code).toBe("INVALID_ARG");
    expect(error.message).toContain(message);
    expect(sent).toHaveLength(2);
  });
});

const settled = () => new Promise(setImmediate);

describe("model client concurrency", () => {
  it("ModelClient limits the number of requests in flight", async () => {
    const config = {
      name: "m",
      max_batch_size: 0,
      input: [{ name: "IN", data_type: "TYPE_INT32", dims: [1] }],
      output: [],
    };
    const answers: ((response: Response) => void)[] = [];
    const fetch = async (url: string) => {
      if (!url.endsWith("/infer")) return json(config)();
      return new Promise<Response>((resolve) => answers.push(resolve));
    };
    const client = new ModelClient("host:1", "m", { fetch, maxConcurrency: 2, maxQueueSize: 1 });
    await client.modelConfig();
    const calls = [1, 2, 3, 4].map((i) => client.inferSample({ IN: [i] }));
    await expect(calls[3]).rejects.toMatchObject({ code: "UNAVAILABLE" });
    expect(answers).toHaveLength(2);
    const answer = json({ outputs: [] });
    answers[0]!(answer());
    await calls[0];
    await settled();
    expect(answers).toHaveLength(3);
    answers[1]!(answer());
    answers[2]!(answer());
    await Promise.all(calls.slice(0, 3));
  });
});

describe("waiting for a model", () => {
  it("continues until the server is up and the model is ready", async () => {
    const { fetch, sent } = fakeFetch(
      () => Promise.reject(new TypeError("fetch failed")),
      json({ error: "unknown model" }, 404),
      json({}, 400),
      json({}),
    );
    await new ModelClient("host:1", "m", { fetch, retries: 0 }).waitForModel();
    expect(sent).toHaveLength(4);
  });

  it("ends at its timeout and names the reason", async () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const { fetch } = fakeFetch(() => Promise.reject(new TypeError("fetch failed")));
    const client = new ModelClient("host:1", "m", { fetch, initTimeoutMs: 60, retries: 0 });
    const failures = [
      failure(client.waitForServer()),
      failure(client.waitForModel()),
      failure(client.inferSample({ IN: [1] })),
    ];
    await vi.advanceTimersByTimeAsync(60);
    for (const error of await Promise.all(failures)) {
      expect(error.code).toBe("UNAVAILABLE");
      expect(error.message).toMatch(/^(the server|model 'm') was not ready within 60 ms$/);
      expect((error.cause as Error).message).toContain("fetch failed");
    }
  });

  it("ends at once on an error that waiting cannot change", async () => {
    const { fetch, sent } = fakeFetch(json({ error: "This API is restricted" }, 500));
    const client = new ModelClient("host:1", "m", { fetch });
    expect(await failure(client.waitForServer())).toMatchObject({ code: "INTERNAL" });
    expect(sent).toHaveLength(1);
  });

  it("is aborted only for the call with the signal", async () => {
    const waiting: ((response: Response) => void)[] = [];
    const fetch = (url: string) =>
      url.endsWith("/ready")
        ? new Promise<Response>((resolve) => waiting.push(resolve))
        : Promise.resolve(json(url.endsWith("/config") ? config : answer)());
    const client = new ModelClient("host:1", "m", { fetch });
    const controller = new AbortController();
    const given = failure(client.inferSample({ IN: [1] }, { signal: controller.signal }));
    const other = client.inferSample({ IN: [1] });
    controller.abort();
    expect(await given).toMatchObject({ code: "CANCELLED" });
    waiting[0]!(new Response());
    expect((await other).OUT!.get(0)).toBe(1);
    expect(waiting).toHaveLength(1);
  });
});

describe("a closed model client", () => {
  it("rejects new calls and calls that wait for the model, and finishes the others", async () => {
    let release: (() => void) | undefined;
    const { url } = await serveByHand((request, response) => {
      const body = request.url!.endsWith("/infer") ? answer : config;
      const respond = () => response.end(JSON.stringify(body));
      request.resume();
      if (body === answer) release = respond;
      else respond();
    });
    const client = new ModelClient(url, "m");
    const running = client.inferSample({ IN: [1] });
    while (release === undefined) await new Promise(setImmediate);
    const closing = client.close();
    expect(await failure(client.inferSample({ IN: [1] }))).toMatchObject({
      code: "UNAVAILABLE",
      message: "the client is closed",
    });
    release();
    expect((await running).OUT!.get(0)).toBe(1);
    await closing;
    await client.close();

    const never = new ModelClient(await deadUrl(), "m");
    const waiting = failure(never.inferSample({ IN: [1] }));
    await never.close();
    expect(await waiting).toMatchObject({ code: "UNAVAILABLE", message: "the client is closed" });
  });

  it("does not close a client that it was given", async () => {
    const url = await serve((triton) => bindIdentity(triton, "m", "INT32", [2]));
    const server = new InferenceServerClient(url);
    {
      await using client = new ModelClient(server, "m");
      await client.inferSample({ IN: [1, 2] });
    }
    expect(await server.isServerLive()).toBe(true);
  });
});
