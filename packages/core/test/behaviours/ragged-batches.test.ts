import { batch, type ModelConfig, type TensorSpec, Triton } from "@tritonjs/core";
import type { BatchInputSpec } from "@tritonjs/core/types";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { parseConfigText } from "../../../../test/golden/support/config-text.js";
import { thrownBy } from "../../../../test/support/outcome.js";

const x = { name: "x", dtype: "FP32", shape: [-1], allowRaggedBatch: true } as const;
const y = { name: "y", dtype: "FP32", shape: [1] } as const;
const ends = {
  name: "ends",
  dtype: "INT32",
  shape: [1],
  batchInput: { kind: "BATCH_ACCUMULATED_ELEMENT_COUNT", sourceInput: "x" },
} as const;

let triton: Triton;
beforeEach(() => {
  triton = new Triton({ delayScheduler: 3 });
});
afterEach(() => triton.close());

/** The sums of three requests of different lengths. */
async function sumsOf(handle: {
  inferSample(inputs: { x: number[] }): Promise<{ y: { data: ArrayLike<number> } }>;
}) {
  const answers = await Promise.all(
    [[1, 2], [3, 4, 5], [6]].map((values) => handle.inferSample({ x: values })),
  );
  return answers.map((answer) => answer.y.data[0]);
}

describe("ragged inputs", () => {
  it("reach a batch callback as one row of elements, with the batch inputs", async () => {
    const seen: unknown[] = [];
    const handle = triton.bind({
      modelName: "ragged",
      inputs: [x, ends],
      outputs: [y],
      inferFunc: batch((inputs) => {
        seen.push([inputs.x.shape, [...inputs.x.data], [...inputs.ends.data]]);
        return { y: new Float32Array(inputs.ends.shape[0]!) };
      }),
    });
    await sumsOf(handle);
    expect(seen).toEqual([[[6], [1, 2, 3, 4, 5, 6], [2, 5, 6]]]);
  });

  it("reach a module in a worker in the same form", async () => {
    const handle = triton.bind({
      modelName: "ragged",
      inputs: [x, ends],
      outputs: [y],
      inferFunc: new URL("./fixtures/ragged-sums.mjs", import.meta.url),
    });
    await handle.ready();
    expect(await sumsOf(handle)).toEqual([3, 12, 6]);
    expect(handle.statistics().executionCount).toBe(1);
  });

  it("reach a plain callback unchanged, as in Triton's Python backend", async () => {
    const seen: unknown[] = [];
    const handle = triton.bind({
      modelName: "ragged",
      inputs: [x],
      outputs: [y],
      inferFunc: (requests) => {
        seen.push(requests.map(({ inputs }) => inputs.x.shape));
        return requests.map(({ inputs }) => ({
          y: [[inputs.x.data.reduce((sum, value) => sum + value, 0)]],
        }));
      },
    });
    expect(await sumsOf(handle)).toEqual([3, 12, 6]);
    expect(seen).toEqual([
      [
        [1, 2],
        [1, 3],
        [1, 1],
      ],
    ]);
  });

  it("can be set up in a Triton model configuration", async () => {
    const handle = triton.bind({
      modelName: "ragged",
      outputs: [y],
      inferFunc: new URL("./fixtures/ragged-sums.mjs", import.meta.url),
      modelConfig: parseConfigText(
        `max_batch_size: 8
         input { name: "x" data_type: TYPE_FP32 dims: [ -1 ] allow_ragged_batch: true }
         output { name: "y" data_type: TYPE_FP32 dims: [ 1 ] }
         batch_input { kind: BATCH_ACCUMULATED_ELEMENT_COUNT target_name: "ends" data_type: TYPE_INT32 source_input: "x" }
         dynamic_batching { }`,
        "ragged",
      ) as Partial<ModelConfig>,
    });
    await handle.ready();
    const infer = handle as unknown as Parameters<typeof sumsOf>[0];
    expect(await sumsOf(infer)).toEqual([3, 12, 6]);
  });

  it("give scattered outputs back in the shape of each request", async () => {
    const handle = triton.bind({
      modelName: "ragged",
      inputs: [x],
      outputs: [
        {
          name: "y",
          dtype: "FP32",
          shape: [-1],
          batchOutput: { kind: "BATCH_SCATTER_WITH_INPUT_SHAPE", sourceInput: "x" },
        },
      ],
      inferFunc: batch((inputs) => ({ y: inputs.x.data.map((value) => 2 * value) })),
    });
    const answers = await Promise.all(
      [[[1, 2]], [[3], [4]], [[5, 6, 7]]].map((values) => handle.inferBatch({ x: values })),
    );
    expect(answers.map((answer) => [answer.y.shape, [...answer.y.data]])).toEqual([
      [
        [1, 2],
        [2, 4],
      ],
      [
        [2, 1],
        [6, 8],
      ],
      [
        [1, 3],
        [10, 12, 14],
      ],
    ]);
  });
});

describe("invalid batch inputs and outputs", () => {
  const bind = (inputs: readonly TensorSpec[], outputs: readonly TensorSpec[] = [y], modelConfig = {}) =>
    thrownBy(() =>
      triton.bind({
        modelName: "bad",
        inputs,
        outputs,
        inferFunc: batch(() => ({ y: [] })) as never,
        modelConfig,
      }),
    );
  const made = (kind: string, sourceInput: string, dtype: TensorSpec["dtype"] = "INT32"): TensorSpec => ({
    name: "made",
    dtype,
    shape: [1],
    batchInput: { kind, sourceInput } as BatchInputSpec,
  });

  it("are rejected with Triton's texts, all at once", () => {
    const text = bind(
      [x, made("BATCH_SIZE", "x"), made("BATCH_ITEM_SHAPE", "z", "INT64")],
      [{ ...y, batchOutput: { kind: "BATCH_SCATTER_WITH_INPUT_SHAPE", sourceInput: "z" } }],
    );
    expect(text).toContain("unknown batch input kind 'BATCH_SIZE' for bad");
    expect(text).toContain("batch input data type must be TYPE_INT32 or TYPE_FP32 for bad");
    expect(text.split("unknown source input name 'z' for bad")).toHaveLength(3);
  });

  it("are rejected in a model configuration, too", () => {
    const text = bind([x], [y], {
      batchInput: [
        { kind: "BATCH_ITEM_SHAPE", targetName: ["c"], dataType: "TYPE_INT32", sourceInput: ["x", "x"] },
      ],
      batchOutput: [
        { kind: "BATCH_SCATTER_WITH_INPUT_SHAPE", targetName: ["y", "y", "z"], sourceInput: ["x"] },
      ],
    });
    expect(text).toContain("batch input kind 'BATCH_ITEM_SHAPE' expects 1 source input, got 2 for bad");
    expect(text).toContain("target output name 'y' can only be specified once for bad");
    expect(text).toContain("unknown target output name 'z' for bad");
  });
});
