import * as overGrpc from "@tritonjs/client/grpc";
import * as overHttp from "@tritonjs/client/http";
import { batch, sample, Triton } from "@tritonjs/core";
import { grpc } from "@tritonjs/grpc";
import { http } from "@tritonjs/http";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";

const triton = new Triton();
const row = { dtype: "FP32", shape: [2] } as const;
let urls: { readonly http: string; readonly grpc: string };

beforeAll(async () => {
  triton.bind({
    modelName: "subtract",
    inputs: [row, row],
    outputs: [row],
    inferFunc: batch(({ INPUT_1, INPUT_2 }) => [INPUT_1.data.map((value, i) => value - INPUT_2.data[i]!)]),
    config: { maxBatchSize: 4 },
  });
  triton.bind({
    modelName: "words",
    inputs: [{ dtype: "BYTES", shape: [-1] }],
    outputs: [{ dtype: "BYTES", shape: [1] }],
    config: { decoupled: true },
    inferFunc: sample(function* ({ INPUT_1 }) {
      for (const word of INPUT_1.strings().flat()) yield [[word as string]];
    }),
  });
  const { addresses } = await triton.serve({ frontends: [http({ port: 0 }), grpc({ port: 0 })] });
  urls = { http: addresses.http!.url, grpc: addresses.grpc!.url };
});

afterAll(() => triton.close());

const clients = {
  http: () => new overHttp.ModelClient(urls.http, "subtract"),
  grpc: () => new overGrpc.ModelClient(urls.grpc, "subtract"),
};

describe.each(Object.entries(clients))("a client over %s", (_protocol, open) => {
  const opened = () => {
    const client = open();
    onTestFinished(() => client.close());
    return client;
  };

  it("sends tensors in the order of the model's inputs", async () => {
    const client = opened();
    const { OUTPUT_1 } = await client.inferSample([5, 7], Float32Array.of(1, 2));
    expect([OUTPUT_1!.shape, OUTPUT_1!.data]).toEqual([[2], Float32Array.of(4, 5)]);
    const rows = await client.inferBatch([[5, 7]], [[1, 2]], { id: "1", timeoutMs: 10_000 });
    expect([rows.OUTPUT_1!.shape, rows.OUTPUT_1!.data]).toEqual([[1, 2], Float32Array.of(4, 5)]);
  });

  it.each([
    ["too few", [[1, 2]], "expected 2 tensors by position ('INPUT_1', 'INPUT_2'), got 1"],
    [
      "too many",
      [
        [1, 2],
        [1, 2],
        [1, 2],
      ],
      "expected 2 tensors by position ('INPUT_1', 'INPUT_2'), got 3",
    ],
    [
      "mixed",
      [[1, 2], { INPUT_2: [1, 2] }],
      "expected all tensors by name or all by position, got 'INPUT_2' after tensors by position",
    ],
  ])("refuses %s tensors by position before anything is sent", async (_name, call, text) => {
    const infer = opened();
    const given = (...tensors: unknown[]) => infer.inferSample(...(tensors as [number[]]));
    await expect(given(...call)).rejects.toMatchObject({
      code: "INVALID_ARG",
      message: `model 'subtract': ${text}`,
    });
  });

  it("refuses a call without inputs", async () => {
    const none = opened().inferSample(undefined as never);
    await expect(none).rejects.toThrow(
      "inputs of model 'subtract': expected an object with a value for each input, or tensors by position, got undefined",
    );
  });
});

it("the client of decoupled models streams the answers to tensors by position", async () => {
  const client = new overGrpc.DecoupledModelClient(urls.grpc, "words");
  onTestFinished(() => client.close());
  const words: unknown[] = [];
  for await (const { OUTPUT_1 } of client.inferSample(["a", "bc"])) {
    words.push(new TextDecoder().decode(OUTPUT_1!.data[0] as Uint8Array));
  }
  expect(words).toEqual(["a", "bc"]);
});
