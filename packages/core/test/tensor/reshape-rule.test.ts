import { Tensor } from "@tritonjs/protocol";
import { describe, expect, it } from "vitest";
import { emptyModelInput, emptyModelOutput } from "../../src/config/defaults.js";
import { reshapeRule } from "../../src/tensor-rows.js";
import { Triton } from "../../src/triton/triton.js";

const tensor = (shape: readonly number[]) =>
  Tensor.fromElements("FP32", shape, new Float32Array(shape.reduce((count, dim) => count * dim, 1)));

describe("a reshape", () => {
  it("keeps the sizes of variable dimensions in order, and keeps the rows", () => {
    const rule = reshapeRule([-1, 2, 3, -1], [1, -1, 6, -1], true);
    expect(rule(tensor([7, 4, 2, 3, 5])).shape).toEqual([7, 1, 4, 6, 5]);
  });

  it("turns a tensor of one element into a scalar and back", () => {
    expect(reshapeRule([1], [], true)(tensor([3, 1])).shape).toEqual([3]);
    expect(reshapeRule([], [1], true)(tensor([3])).shape).toEqual([3, 1]);
  });

  it("leaves tensors with other dimensions unchanged", () => {
    const other = tensor([2, 2]);
    expect(reshapeRule([4], [2, 2], false)(other)).toBe(other);
    expect(reshapeRule([2, 3], [6], false)(other)).toBe(other);
  });
});

describe("a model with reshaped tensors", () => {
  const seen: (readonly number[])[] = [];
  const bindReshaping = (triton: Triton) =>
    triton.bind({
      modelName: "m",
      inferFunc: ([request]) => {
        seen.push(request!.inputs.x!.shape);
        return [{ y: request!.inputs.x! }];
      },
      modelConfig: {
        maxBatchSize: 4,
        input: [
          { ...emptyModelInput(), name: "x", dataType: "TYPE_FP32", dims: [4], reshape: { shape: [2, 2] } },
        ],
        output: [
          {
            ...emptyModelOutput(),
            name: "y",
            dataType: "TYPE_FP32",
            dims: [1, 4],
            reshape: { shape: [2, 2] },
          },
        ],
      },
    });

  it("sees the reshaped tensors, and its clients see the declared ones", async () => {
    await using triton = new Triton();
    const y = (
      (await bindReshaping(triton).infer({ x: [[1, 2, 3, 4]] })) as Record<string, { shape: number[] }>
    ).y;
    expect(seen.at(-1)).toEqual([1, 2, 2]);
    expect(y?.shape).toEqual([1, 1, 4]);
  });

  it("reshapes as a member of an ensemble that reshapes too", async () => {
    await using triton = new Triton();
    bindReshaping(triton);
    const ensemble = triton.bindEnsemble({
      modelName: "e",
      inputs: [],
      outputs: [],
      steps: [{ modelName: "m", inputMap: { x: "a" }, outputMap: { y: "b" } }],
      modelConfig: {
        input: [
          { ...emptyModelInput(), name: "a", dataType: "TYPE_FP32", dims: [2, 2], reshape: { shape: [4] } },
        ],
        output: [
          { ...emptyModelOutput(), name: "b", dataType: "TYPE_FP32", dims: [4], reshape: { shape: [1, 4] } },
        ],
      },
    });
    const { b } = (await ensemble.infer({
      a: [
        [
          [1, 2],
          [3, 4],
        ],
      ],
    } as never)) as Record<string, { shape: number[] }>;
    expect(b?.shape).toEqual([1, 4]);
  });
});
