import type { Tensor, TensorSpec } from "@tritonjs/protocol";
import { describe, expect, it } from "vitest";
import { EqualInputsRule } from "../../src/batch/payload.js";
import { modelConfig } from "../support/model-config.js";
import { fp32, ones } from "../support/tensors.js";

const rule = (...inputs: readonly TensorSpec[]) => new EqualInputsRule(modelConfig({ inputs }));
const x = (shape: number[], optional = false): TensorSpec => ({ name: "x", dtype: "FP32", shape, optional });
const z = (shape: number[], optional = false): TensorSpec => ({ name: "z", dtype: "FP32", shape, optional });
const inputs = (tensors: Record<string, Tensor>) => new Map(Object.entries(tensors));

describe("the inputs that must be equal in a batch", () => {
  it("are none when all dimensions are fixed, because validation has checked them", () => {
    const fixed = rule(x([2, 3]), z([4]));
    expect(fixed.compares).toBe(false);
    expect(fixed.startWith(inputs({ x: ones(1, 2, 3) }))).toBeUndefined();
  });

  it("are those with a variable dimension, compared by shape without the rows", () => {
    const required = rule(x([-1]), z([3])).startWith(inputs({ x: ones(1, 5), z: ones(1, 3) }))!;
    expect(required.holdsFor(inputs({ x: ones(4, 5), z: ones(4, 3) }))).toBe(true);
    expect(required.holdsFor(inputs({ x: ones(1, 6), z: ones(1, 3) }))).toBe(false);
  });

  it("exclude inputs that allow ragged batches", () => {
    const config = modelConfig({ inputs: [x([-1])] });
    const ragged = new EqualInputsRule({
      ...config,
      input: config.input.map((input) => ({ ...input, allowRaggedBatch: true })),
    });
    expect(ragged.compares).toBe(false);
  });

  it("include shape tensors, compared by content", () => {
    const config = modelConfig({ inputs: [x([2])] });
    const shapes = new EqualInputsRule({
      ...config,
      input: config.input.map((input) => ({ ...input, isShapeTensor: true })),
    });
    const required = shapes.startWith(inputs({ x: fp32([2], [1, 2]) }))!;
    expect(shapes.comparesShapes).toBe(true);
    expect(required.holdsFor(inputs({ x: fp32([2], [1, 2]) }))).toBe(true);
    expect(required.holdsFor(inputs({ x: fp32([2], [1, 3]) }))).toBe(false);
    expect(required.holdsFor(inputs({ x: fp32([1], [1]) }))).toBe(false);
  });

  it("have the same names in all requests when one input is optional", () => {
    const optional = rule(x([2]), z([2], true));
    expect([optional.compares, optional.comparesShapes]).toEqual([true, false]);
    const both = optional.startWith(inputs({ x: ones(1, 2), z: ones(1, 2) }))!;
    expect(both.holdsFor(inputs({ z: ones(1, 2), x: ones(1, 2) }))).toBe(true);
    expect(both.holdsFor(inputs({ x: ones(1, 2) }))).toBe(false);
    const one = optional.startWith(inputs({ x: ones(1, 2) }))!;
    expect(one.holdsFor(inputs({ x: ones(1, 2), z: ones(1, 2) }))).toBe(false);
  });

  it("differ when requests have the same number of other optional inputs", () => {
    const optional = rule(x([-1], true), z([-1], true));
    const onlyX = optional.startWith(inputs({ x: ones(1, 2) }))!;
    expect(onlyX.holdsFor(inputs({ z: ones(1, 2) }))).toBe(false);
    expect(onlyX.holdsFor(inputs({ x: ones(1, 3) }))).toBe(false);
    expect(onlyX.holdsFor(inputs({ x: ones(1, 2) }))).toBe(true);
  });
});
