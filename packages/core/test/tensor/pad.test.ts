import { DATA_TYPES, type DataType, type Tensor } from "@tritonjs/protocol";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { cutTo, elementOf, padRows, sliceRows } from "../../src/tensor-rows.js";
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
