import { DATA_TYPES, type DataType } from "@tritonjs/protocol";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { mergeInputs, splitOutputs, type Tensors } from "../../src/batch/batch-tensors.js";
import { bits, fp32, tensors } from "../support/tensors.js";

/** Requests with two inputs each, of one random row shape and random numbers of rows. */
function requestsOf(datatype: DataType): fc.Arbitrary<Tensors[]> {
  const rowShape = fc.array(fc.nat({ max: 3 }), { maxLength: 2 });
  const rowCounts = fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 1, maxLength: 6 });
  return fc
    .tuple(rowShape, rowCounts)
    .chain(([shape, counts]) =>
      fc.tuple(
        ...counts.map((rows) => fc.tuple(tensors(datatype, [rows, ...shape]), tensors("INT64", [rows, 1]))),
      ),
    )
    .map((requests) =>
      requests.map(
        ([a, b]) =>
          new Map([
            ["a", a],
            ["b", b],
          ]),
      ),
    );
}

const bitsOf = (request: Tensors) => [...request].map(([name, tensor]) => [name, bits(tensor)]);
const rowsOf = (request: Tensors) => request.get("b")!.shape[0]!;

describe("merging requests and splitting the batch", () => {
  it.each(DATA_TYPES)("returns each %s request bit for bit, whatever its rows", (datatype) => {
    fc.assert(
      fc.property(requestsOf(datatype), (requests) => {
        const before = requests.map(bitsOf);
        const rows = requests.map(rowsOf);
        const merged = mergeInputs(requests);
        const total = rows.reduce((sum, n) => sum + n, 0);
        for (const tensor of merged.values()) expect(tensor.shape[0]).toBe(total);
        expect(splitOutputs(merged, rows).map(bitsOf)).toEqual(before);
      }),
      { numRuns: 60 },
    );
  });
});

describe("a merged batch", () => {
  it("owns its memory when it has several requests", () => {
    const requests = [1, 2].map((value): Tensors => new Map([["a", fp32([1, 2], [value, value])]]));
    (mergeInputs(requests).get("a")!.elements as Float32Array).fill(9);
    expect(requests.map((request) => [...(request.get("a")!.elements as Float32Array)])).toEqual([
      [1, 1],
      [2, 2],
    ]);
  });

  it("rejects requests with different sets of inputs", () => {
    const [a, b] = ["a", "b"].map((name): Tensors => new Map([[name, fp32([1, 1], [1])]]));
    const both: Tensors = new Map([...a!, ...b!]);
    for (const requests of [
      [a!, b!],
      [a!, both],
      [both, a!],
    ]) {
      expect(() => mergeInputs(requests)).toThrow("Cannot batch requests with different set of inputs keys");
    }
  });

  it("is the request itself when there is only one", () => {
    const request: Tensors = new Map([["a", fp32([1, 2], [1, 2])]]);
    expect(mergeInputs([request])).toBe(request);
  });
});

describe("a split batch", () => {
  it("gives each request a view that shows no bytes of its neighbours", () => {
    const outputs: Tensors = new Map([["y", fp32([3, 1], [1, 2, 3])]]);
    const parts = splitOutputs(outputs, [1, 2]);
    expect(parts.map((part) => part.get("y")!.bytes.byteLength)).toEqual([4, 8]);
    expect(parts.map((part) => part.get("y")!.shape)).toEqual([
      [1, 1],
      [2, 1],
    ]);
  });
});
