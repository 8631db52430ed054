import { Tensor } from "@tritonjs/protocol";
import { describe, expect, it } from "vitest";
import { convertShape, EnsembleTensor } from "../../../src/scheduler/ensemble-steps.js";

describe("a tensor between models with and without a batch axis", () => {
  it.each([
    ["is unchanged between models that both have or both lack the axis", [3, 4], 3, [4], true, [3, 4]],
    ["gets an axis of one row when it has none", [4], 0, [4], true, [1, 4]],
    ["keeps its first axis when that is the batch", [6, 4], 0, [4], true, [6, 4]],
    ["keeps all axes for a model whose dims include the batch", [2, 4], 2, [-1, 4], false, [2, 4]],
    ["loses an axis of one row", [1, 4], 1, [4], false, [4]],
    ["keeps an axis of several rows, which the model then rejects", [2, 4], 2, [4], false, [2, 4]],
  ] as const)("%s", (_, shape, batchSize, dims, batched, expected) => {
    expect(convertShape(shape, batchSize, dims, batched)).toEqual(expected);
  });
});

describe("the readers of a tensor", () => {
  it("get copies, except the last one, which gets the tensor itself", () => {
    const elements = Float32Array.of(1, 2);
    const tensor = new EnsembleTensor(Tensor.fromElements("FP32", [2], elements), 0, 2);
    const first = tensor.take([2], false)!.elements as Float32Array;
    const last = tensor.take([2], false)!.elements;
    expect([first === elements, last === elements]).toEqual([false, true]);
    expect([...first]).toEqual([1, 2]);
  });
});
