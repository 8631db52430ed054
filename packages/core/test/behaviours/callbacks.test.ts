import { batch, sample, Triton } from "@tritonjs/core";
import ndarray from "ndarray";
import { afterEach, describe, expect, it } from "vitest";
import { importCompiled } from "../../../../test/support/compile-fixture.js";
import { echo, echoInputs, echoOutputs } from "../../../../test/support/echo-model.js";
import { thrownBy } from "../../../../test/support/outcome.js";

let triton = new Triton({ gpus: [0, 1] });
afterEach(async () => {
  await triton.close();
  triton = new Triton({ gpus: [0, 1] });
});

const echoSpecs = { modelName: "m", inputs: echoInputs, outputs: echoOutputs } as const;

describe("a callback made with batch()", () => {
  it("gets the rows of all requests in one ndarray", async () => {
    const shapes: number[][] = [];
    const handle = triton.bind({
      ...echoSpecs,
      inferFunc: batch(({ x }) => {
        shapes.push(x.shape);
        return {
          y: ndarray(
            x.data.map((value) => value * 2),
            x.shape,
          ),
        };
      }),
    });
    await handle.ready();
    expect(await Promise.all([echo(handle, 1), echo(handle, 2), echo(handle, 3)])).toEqual([2, 4, 6]);
    expect(shapes).toEqual([[3, 1]]);
  });

  it("may be asynchronous", async () => {
    const inferFunc = batch<typeof echoInputs, typeof echoOutputs>(async ({ x }) => {
      await new Promise<void>((resolve) => setImmediate(resolve));
      return { y: x };
    });
    expect(await echo(triton.bind({ ...echoSpecs, inferFunc }), 7)).toBe(7);
  });

  it("may return a strided ndarray", async () => {
    const handle = triton.bind({
      modelName: "transpose",
      inputs: [{ name: "x", dtype: "FP32", shape: [2] }],
      outputs: [{ name: "y", dtype: "FP32", shape: [2] }],
      inferFunc: batch(({ x }) => ({ y: x.step(1, -1) })),
    });
    const { y } = await handle.inferBatch({
      x: [
        [1, 2],
        [3, 4],
      ],
    });
    expect([...y.data]).toEqual([2, 1, 4, 3]);
  });
});

describe("a callback made with sample()", () => {
  it("gets the tensors of one request, without a batch axis", async () => {
    const handle = triton.bind({
      modelName: "sum",
      inputs: [{ name: "x", dtype: "FP64", shape: [-1, 2] }],
      outputs: [{ name: "sum", dtype: "FP64", shape: [1] }],
      inferFunc: sample(({ x }) => ({ sum: [x.data.reduce((sum, value) => sum + value, 0)] })),
    });
    expect(handle.config().maxBatchSize).toBe(0);
    const { sum } = await handle.infer({
      x: [
        [1, 2],
        [3, 4],
      ],
    });
    expect([sum.shape, sum.data[0]]).toEqual([[1], 10]);
  });

  it("is rejected for a model with batching", () => {
    const inferFunc = sample<typeof echoInputs, typeof echoOutputs>(({ x }) => ({ y: x }));
    for (const options of [{ config: { maxBatchSize: 4 } }, { modelConfig: { maxBatchSize: 4 } }]) {
      expect(thrownBy(() => triton.bind({ ...echoSpecs, inferFunc, ...options }))).toContain(
        "config.batching is true, but a callback made with sample() takes one request at a time: leave config.batching out",
      );
    }
  });
});

describe("a plain callback", () => {
  it("gets the list of requests and returns one result for each", async () => {
    const sizes: number[] = [];
    const handle = triton.bind({
      ...echoSpecs,
      inferFunc: (requests) => {
        sizes.push(requests.length);
        return requests.map(({ inputs, batchSize }) => ({
          y: inputs.x.data.map((value) => value + batchSize * 100),
        }));
      },
    });
    await handle.ready();
    const [one, two] = await Promise.all([
      handle.inferBatch({ x: [[1]] }),
      handle.inferBatch({ x: [[2], [3]] }),
    ]);
    expect([sizes, [...one.y.data], [...two.y.data]]).toEqual([[2], [101], [202, 203]]);
  });

  it("gets id, parameters, priority, size and requested outputs of each request", async () => {
    const seen: unknown[] = [];
    const handle = triton.bind({
      ...echoSpecs,
      inferFunc: async (requests, context) => {
        for (const { id, parameters, priority, batchSize, requestedOutputs } of requests) {
          seen.push({ id, parameters, priority, batchSize, requestedOutputs });
        }
        expect(context.requests.map(({ id }) => id)).toEqual(requests.map(({ id }) => id));
        return requests.map(({ inputs }) => ({ y: inputs.x }));
      },
    });
    await handle.ready();
    const parameters = { user: "ann", retries: 3, strict: true };
    await Promise.all([echo(handle, 1, { id: "r1", parameters, priority: 2 }), echo(handle, 2)]);
    expect(seen).toEqual([
      { id: "r1", parameters, priority: 2, batchSize: 1, requestedOutputs: [] },
      { id: "", parameters: {}, priority: 0, batchSize: 1, requestedOutputs: [] },
    ]);
  });
});

describe("the callback context", () => {
  it("names model, version, configuration, instance and device", async () => {
    const contexts: unknown[] = [];
    const handle = triton.bind({
      ...echoSpecs,
      modelVersion: 3,
      config: { parameters: { k: "v" }, instanceGroup: { kind: "KIND_GPU", gpus: [1] } },
      inferFunc: batch(
        ({ x }, { modelName, modelVersion, modelConfig, instanceName, instanceIndex, device }) => {
          contexts.push({
            modelName,
            modelVersion,
            k: modelConfig.parameters.k,
            instanceName,
            instanceIndex,
            device,
          });
          return { y: x };
        },
      ),
    });
    await echo(handle, 1);
    expect(contexts).toEqual([
      {
        modelName: "m",
        modelVersion: 3,
        k: { stringValue: "v" },
        instanceName: "m_0_0",
        instanceIndex: 0,
        device: {
          kind: "KIND_GPU",
          id: 1,
          executionProviders: [{ name: "cuda", deviceId: 1 }, "cpu"],
          environment: { CUDA_VISIBLE_DEVICES: "1" },
          torch: "cuda:1",
        },
      },
    ]);
  });
});

describe("decorated methods", () => {
  it("are callbacks bound to their object", async () => {
    interface Fixture {
      readonly DecoratedModel: new (
        factor: number,
      ) => Record<"rows" | "one", (inputs: { x: { data: Int32Array } }) => { y: Int32Array }>;
    }
    const fixture = new URL("../../../../test/support/decorated/decorated-model.ts", import.meta.url);
    const { DecoratedModel } = await importCompiled<Fixture>(fixture);
    const triple = new DecoratedModel(3);
    const double = new DecoratedModel(2);
    const rows = triton.bind({ ...echoSpecs, inferFunc: triple.rows });
    const other = triton.bind({ ...echoSpecs, modelVersion: 2, inferFunc: double.rows });
    const one = triton.bind({ ...echoSpecs, modelName: "one", inferFunc: triple.one });
    expect([await echo(rows, 5), await echo(other, 5), await echo(one, 5)]).toEqual([15, 10, 8]);
    expect([rows.config().maxBatchSize, one.config().maxBatchSize]).toEqual([4, 0]);
  });
});
