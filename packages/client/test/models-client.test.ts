import {
  DecoupledModelClient as GrpcDecoupledClient,
  createClient as grpcClient,
} from "@tritonjs/client/grpc";
import { createClient as httpClient } from "@tritonjs/client/http";
import { batch, Triton } from "@tritonjs/core";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

function bindModels(triton: Triton) {
  const iris = triton.bind({
    modelName: "iris",
    inputs: [
      { name: "measurements", dtype: "FP32", shape: [4] },
      { name: "bias", dtype: "FP32", shape: [1], optional: true },
    ],
    outputs: [{ name: "scores", dtype: "FP32", shape: [3], labels: ["setosa", "versi:color", "virginica"] }],
    inferFunc: batch(({ measurements, bias }) => ({
      scores: (measurements.toArray() as number[][]).map((row) =>
        row.slice(0, 3).map((value) => value + (bias?.get(0, 0) ?? 0)),
      ),
    })),
    config: { maxBatchSize: 8 },
  });
  const countdown = triton.bind({
    modelName: "count-down",
    inputs: [
      { name: "from", dtype: "INT32", shape: [1] },
      { name: "word", dtype: "BYTES", shape: [1] },
    ],
    outputs: [
      { name: "left", dtype: "INT64", shape: [1] },
      { name: "square", dtype: "FP32", shape: [2, 2] },
      { name: "word", dtype: "BYTES", shape: [-1] },
    ],
    inferFunc: async function* ([request]) {
      const { from, word } = request!.inputs;
      for (let left = from.get(0); left > 0; left--) {
        if (left === 7) throw new Error("seven is not counted");
        yield [
          {
            left: [BigInt(left)],
            square: [
              [left, 2],
              [3, 4],
            ],
            word: [word.text(0), "!"],
          },
        ];
      }
    },
    config: { decoupled: true, batching: false },
  });
  const sum = triton.bind({
    modelName: "sum",
    inputs: [{ name: "x", dtype: "INT32", shape: [1] }],
    outputs: [{ name: "y", dtype: "INT32", shape: [1] }],
    inferFunc: (requests) => requests.map(({ inputs }) => ({ y: [inputs.x.get(0)] })),
    config: { sequence: {}, batching: false },
  });
  return { iris, countdown, sum };
}

type Models = ReturnType<typeof bindModels>;

let triton: Triton;
let urls: { http: string; grpc: string };

beforeEach(async () => {
  triton = new Triton();
  bindModels(triton);
  const { http } = await import("@tritonjs/http");
  const { grpc } = await import("@tritonjs/grpc");
  const { addresses } = await triton.serve({ frontends: [http({ port: 0 }), grpc({ port: 0 })] });
  urls = { http: addresses.http!.url, grpc: addresses.grpc!.url };
});
afterEach(() => triton.close());

describe.each(["http", "grpc"] as const)("createClient of %s", (protocol) => {
  const open = () => (protocol === "http" ? httpClient<Models>(urls.http) : grpcClient<Models>(urls.grpc));

  it("infers samples and batches of the models that the types name", async () => {
    await using client = open();
    const iris = client.model("iris");
    const { scores } = await iris.inferSample({ measurements: [1, 2, 3, 4], bias: 1 });
    expect([...scores.data]).toEqual([2, 3, 4]);
    const batch = await iris.inferBatch({
      measurements: [
        [0, 0, 0, 0],
        [1, 1, 1, 1],
      ],
    });
    expect(batch.scores.shape).toEqual([2, 3]);
    expect(client.model("iris")).toBe(iris);
  });

  it("returns the best classes of an output with their labels", async () => {
    await using client = open();
    const inputs = { measurements: [1, 3, 2, 0] };
    expect(await client.model("iris").classify("scores", inputs, { classes: 2 })).toEqual([
      { value: 3, index: 1, label: "versi:color" },
      { value: 2, index: 2, label: "virginica" },
    ]);
    const failed = client.model("iris").classify("sores" as "scores", inputs);
    await expect(failed).rejects.toMatchObject({ code: "INVALID_ARG" });
  });

  it("yields the responses of a decoupled model", async () => {
    await using client = open();
    const seen: unknown[] = [];
    for await (const { left, square, word } of client
      .model("count-down")
      .streamSample({ from: 2, word: "hé" })) {
      seen.push([left.get(0), left.shape, square.shape, [...square.data], word.strings()]);
    }
    expect(seen).toEqual([
      [2n, [1], [2, 2], [2, 2, 3, 4], ["hé", "!"]],
      [1n, [1], [2, 2], [1, 2, 3, 4], ["hé", "!"]],
    ]);
  });

  it("reports an error of a stream, and one response of a decoupled model as unsupported", async () => {
    await using client = open();
    const model = client.model("count-down");
    const values: bigint[] = [];
    await expect(async () => {
      for await (const { left } of model.streamSample({ from: 8, word: "x" })) values.push(left.get(0));
    }).rejects.toThrow("seven is not counted");
    expect(values).toEqual([8n]);
    await expect(model.inferSample({ from: 2, word: "x" })).rejects.toMatchObject({ code: "UNSUPPORTED" });
  });

  it("cancels a stream when the loop is left or the client is closed", async () => {
    const client = open();
    const model = client.model("count-down");
    for await (const { left } of model.streamSample({ from: 5, word: "x" })) {
      expect(left.get(0)).toBe(5n);
      break;
    }
    await client.close();
    await client.close();
    await expect(model.inferSample({ from: 1, word: "x" })).rejects.toMatchObject({ code: "UNAVAILABLE" });
    await expect(client.model("iris").inferSample({ measurements: [1, 2, 3, 4] })).rejects.toMatchObject({
      code: "UNAVAILABLE",
    });
  });

  it("passes the sequence of a request", async () => {
    await using client = open();
    const sequence = { id: 7, start: true, end: true };
    const { y } = await client.model("sum").inferSample({ x: 3 }, { sequence });
    expect(y.get(0)).toBe(3);
  });

  it("rejects options that it does not have", () => {
    const create = protocol === "http" ? httpClient : grpcClient;
    expect(() => create(urls[protocol], { retires: 1 } as object)).toThrow(/createClient\(\).*retires/s);
  });
});

it("a client of a server without configurations takes whole tensors by the metadata", async () => {
  const fetchWithoutConfig: typeof fetch = async (url, init) =>
    String(url).endsWith("/config")
      ? Response.json({ error: "not here" }, { status: 404 })
      : fetch(url, init);
  await using client = httpClient<Models>(urls.http, { fetch: fetchWithoutConfig as never });
  const inputs = { measurements: [[1, 2, 3, 4]], bias: [[0]] } as never;
  const { scores } = await client.model("iris").inferSample(inputs);
  expect(scores.shape).toEqual([1, 3]);
});

it("a stream over HTTP refuses bytes that are not text and sends them over gRPC", async () => {
  const inputs = { from: 1, word: [Uint8Array.of(0xff)] };
  await using client = httpClient<Models>(urls.http);
  await expect(client.model("count-down").streamSample(inputs).next()).rejects.toThrow(
    "input 'word' of model 'count-down': cannot send an element as JSON, because it is not UTF-8: use the gRPC client",
  );
  await using decoupled = new GrpcDecoupledClient(urls.grpc, "count-down");
  const { value } = await decoupled.inferSample(inputs).next();
  expect(value).toMatchObject({ left: { data: BigInt64Array.of(1n) } });
});
