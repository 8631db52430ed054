import { batch, Triton } from "@tritonjs/core";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { outcomeOf } from "../../../../test/support/outcome.js";

const y = { name: "y", dtype: "FP32", shape: [1] } as const;

let triton: Triton;
beforeEach(() => {
  triton = new Triton({ delayScheduler: 3 });
});
afterEach(() => triton.close());

describe("shape tensors", () => {
  const size = { name: "size", dtype: "INT32", shape: [2], isShapeTensor: true } as const;
  const row = { name: "x", dtype: "FP32", shape: [1] } as const;

  it("are passed once for the batch, without a batch axis", async () => {
    const seen: unknown[] = [];
    const handle = triton.bind({
      modelName: "shaped",
      inputs: [row, size],
      outputs: [y, { ...size, name: "like" }],
      inferFunc: batch((inputs) => {
        seen.push([[...inputs.x.data], inputs.size.shape, [...inputs.size.data]]);
        return { y: inputs.x, like: inputs.size };
      }),
    });
    const answers = await Promise.all(
      [1, 2, 3].map((value) => handle.inferSample({ x: [value], size: [4, value < 3 ? 5 : 6] })),
    );
    expect(seen).toEqual([
      [[1, 2], [2], [4, 5]],
      [[3], [2], [4, 6]],
    ]);
    expect(answers.map(({ like }) => [like.shape, [...like.data]])).toEqual([
      [[2], [4, 5]],
      [[2], [4, 5]],
      [[2], [4, 6]],
    ]);
  });

  it("are rejected with another shape", async () => {
    const handle = triton.bind({
      modelName: "shaped",
      inputs: [row, size],
      outputs: [y],
      inferFunc: batch((inputs) => ({ y: inputs.x })),
    });
    expect(await outcomeOf(handle.inferBatch({ x: [[1]], size: [[1, 2]] }))).toContain(
      "input 'size' of model 'shaped': expected shape [2], got [1,2]",
    );
  });
});
