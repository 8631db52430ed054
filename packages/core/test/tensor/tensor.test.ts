import { DATA_TYPES, type DataType, Tensor } from "@tritonjs/protocol";
import { emptyModelInput, emptyModelOutput } from "@tritonjs/protocol/config";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { cutTo, elementOf, padRows, reshapeRule, sliceRows } from "../../src/tensor-rows.js";
import { Triton } from "../../src/triton/triton.js";
import { bits, fp32, tensors } from "../support/tensors.js";

/** Tensors of one data type and rank, with random shapes. */
function ragged(datatype: DataType): fc.Arbitrary<Tensor[]> {
  return fc.integer({ min: 1, max: 3 }).chain((rank) =>
    fc.array(
      fc
        .array(fc.nat({ max: 4 }), { minLength: rank, maxLength: rank })
        .chain((shape) => tensors(datatype, shape)),
      { minLength: 1, maxLength: 5 },
    ),
  );
}

describe("padding rows", () => {
  it.each(DATA_TYPES)("and cutting them back returns each %s tensor bit for bit", (datatype) => {
    const element = elementOf(datatype === "BYTES" ? "-" : datatype === "BOOL" ? true : 1, datatype, "x");
    fc.assert(
      fc.property(ragged(datatype), (given) => {
        const before = given.map(bits);
        const padded = padRows(given, element);
        let row = 0;
        const back = given.map(({ shape }) => {
          const mine = sliceRows(padded, row, shape[0]!);
          row += shape[0]!;
          return cutTo(mine, shape);
        });
        expect(back.map(bits)).toEqual(before);
      }),
      { numRuns: 60 },
    );
  });

  it("fills up the end of each dimension", () => {
    const padded = padRows([fp32([1, 1, 2], [1, 2]), fp32([1, 2, 1], [3, 4])], -1);
    expect([padded.shape, [...(padded.elements as Float32Array)]]).toEqual([
      [2, 2, 2],
      [1, 2, -1, -1, 3, -1, 4, -1],
    ]);
  });
});

describe("elementFromScalar", () => {
  it("converts a scalar to the element of the data type", () => {
    expect(elementOf(1, "FP16", "x")).toBe(0x3c00);
    expect(elementOf(7, "INT64", "x")).toBe(7n);
    expect(elementOf("ab", "BYTES", "x")).toEqual(new TextEncoder().encode("ab"));
  });

  it("rejects a scalar that the data type cannot hold", () => {
    expect(() => elementOf("ab", "FP32", "padding of input 'x'")).toThrow(/padding of input 'x'/);
  });
});

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
