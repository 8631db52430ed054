import { onnxruntime } from "@tritonjs/backends/onnxruntime";
import { Triton } from "@tritonjs/core";
import ndarray from "ndarray";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { identityOnnx, onnxTypes } from "../../../../test/support/onnx-models.js";

/** Enough for buffers that come back from the worker. */
const WIDTH = 50_000;

describe("large inputs of a model file in a worker", () => {
  let triton: Triton;
  beforeAll(async () => {
    triton = new Triton();
    const handle = triton.bind({
      modelName: "identity",
      inferFunc: onnxruntime({ model: identityOnnx(onnxTypes.FP32, ["N", "W"]) }),
      config: { maxBatchSize: 8 },
    });
    await handle.ready();
  });
  afterAll(() => triton.close());

  it("never carry bytes of another batch, and answers stay as they are", async () => {
    const answers: { value: number; size: number; data: Float32Array }[] = [];
    let next = 1;
    const ask = async (rows: number, width: number) => {
      const value = next++;
      const x = ndarray(new Float32Array(rows * width).fill(value), [rows, width]);
      const answer = await triton.infer<string>("identity", { x });
      answers.push({ value, size: rows * width, data: (answer.y as { data: Float32Array }).data });
    };
    for (const [count, rows, width] of [
      [1, 8, WIDTH],
      [8, 1, WIDTH],
      [6, 2, WIDTH],
      [5, 3, WIDTH / 2],
      [1, 1, WIDTH],
      [12, 1, WIDTH / 2],
    ] as const) {
      await Promise.all(Array.from({ length: count }, () => ask(rows, width)));
    }
    for (const { value, size, data } of answers) {
      expect([data.length, data.every((element) => element === value)]).toEqual([size, true]);
    }
  });
});
