import { onnxruntime } from "@tritonjs/backends/onnxruntime";
import { Triton } from "@tritonjs/core";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { matrixOnnx } from "../../../../test/support/onnx-models.js";

const specs = {
  inputs: [{ name: "x", dtype: "FP32", shape: [4] }],
  outputs: [
    { name: "product", dtype: "FP32", shape: [3] },
    { name: "twice", dtype: "FP32", shape: [4] },
  ],
} as const;

/** Rows of whole numbers: their products are exact, whatever the order of additions. */
const rows = Array.from({ length: 64 }, (_, i) => [i, 64 - i, (i * 7) % 13, -i]);

let triton: Triton;
beforeEach(() => {
  triton = new Triton();
});
afterEach(() => triton.close());

describe("64 single requests to an ONNX model at once", () => {
  for (const count of [1, 2]) {
    it(`run in merged batches on ${count} instance(s), and each answer equals that of the request alone`, async () => {
      const handle = triton.bind({
        modelName: "matrix",
        ...specs,
        inferFunc: onnxruntime({ model: matrixOnnx() }),
        config: { maxBatchSize: 16, instanceGroup: { count } },
      });
      await handle.ready();
      expect(handle.instances()).toHaveLength(count);
      const together = await Promise.all(rows.map((x) => handle.inferSample({ x })));
      const { inferenceCount, executionCount } = handle.statistics();
      expect(inferenceCount).toBe(64);
      expect(executionCount).toBeLessThanOrEqual(8);
      for (const [i, x] of rows.entries()) {
        const alone = await handle.inferSample({ x });
        expect([...together[i]!.product.data]).toEqual([...alone.product.data]);
        expect([...together[i]!.twice.data]).toEqual(x.map((value) => 2 * value));
      }
    });
  }

  it("share batches with requests of several rows", async () => {
    const handle = triton.bind({
      modelName: "matrix",
      ...specs,
      inferFunc: onnxruntime({ model: matrixOnnx() }),
      config: { maxBatchSize: 8 },
    });
    await handle.ready();
    const sizes = [3, 1, 2, 5, 1];
    const answers = await Promise.all(sizes.map((size) => handle.inferBatch({ x: rows.slice(0, size) })));
    expect(answers.map(({ twice }) => twice.shape)).toEqual(sizes.map((size) => [size, 4]));
    for (const { twice, product } of answers) {
      expect([...twice.data]).toEqual(
        rows
          .slice(0, twice.shape[0])
          .flat()
          .map((value) => 2 * value),
      );
      expect([...product.data.subarray(0, 3)]).toEqual([...answers[0]!.product.data.subarray(0, 3)]);
    }
  });
});

describe("a bound model file", () => {
  it("provides inputs, outputs and batching when bind does not name them", async () => {
    const handle = triton.bind({ modelName: "matrix", inferFunc: onnxruntime({ model: matrixOnnx() }) });
    expect(handle.config()).toMatchObject({
      maxBatchSize: 4,
      backend: "onnxruntime",
      platform: "onnxruntime_onnx",
      input: [{ name: "x", dataType: "TYPE_FP32", dims: [4] }],
      output: [
        { name: "product", dims: [3] },
        { name: "twice", dims: [4] },
      ],
    });
    await handle.ready();
    expect(handle.instances()[0]!.details).toEqual({ executionProvider: "cpu" });
  });

  it("may have more outputs than are served", async () => {
    const handle = triton.bind({
      modelName: "matrix",
      inputs: specs.inputs,
      outputs: [specs.outputs[1]],
      inferFunc: onnxruntime({ model: matrixOnnx() }),
    });
    const result = await handle.inferSample({ x: [1, 2, 3, 4] });
    expect(Object.keys(result)).toEqual(["twice"]);
    expect([...result.twice.data]).toEqual([2, 4, 6, 8]);
  });
});
