import ndarray from "ndarray";
import { describe, expect, it } from "vitest";
import type { DataType, Elements } from "../../src/data-types.js";
import { ndArrayLike, ndArrayOf } from "../../src/nd-array.js";

const utf8 = (text: string) => new TextEncoder().encode(text);

function array<D extends DataType>(datatype: D, elements: Elements, shape: readonly number[]) {
  return ndArrayOf(elements, shape, datatype, "output", "y", "m");
}

describe("an array becomes nested lists", () => {
  it.each<[DataType, Elements, readonly number[], unknown]>([
    ["FP32", Float32Array.of(1, 2, 3, 4, 5, 6), [2, 3], [[1, 2, 3], [4, 5, 6]]], // biome-ignore format: a matrix
    ["FP64", Float64Array.of(0.1), [1, 1, 1], [[[0.1]]]],
    ["UINT8", Uint8Array.of(7), [], 7],
    ["INT32", new Int32Array(0), [2, 0], [[], []]],
    ["INT32", new Int32Array(0), [0, 2], []],
    ["BOOL", Uint8Array.of(0, 1), [2], [false, true]],
    ["FP16", Uint16Array.of(0x3c00, 0xc000), [2], [1, -2]],
    ["BF16", Uint16Array.of(0x3f80), [1], [1]],
    ["BYTES", [utf8("é"), utf8("")], [2, 1], [["é"], [""]]],
    ["INT64", BigInt64Array.of(-5n, 2n ** 53n - 1n, 2n ** 53n, -(2n ** 63n)), [4],
      [-5, 2 ** 53 - 1, "9007199254740992", "-9223372036854775808"]], // biome-ignore format: one row
    ["UINT64", BigUint64Array.of(1n, 2n ** 64n - 1n), [2], [1, "18446744073709551615"]],
  ])("%s of %o", (datatype, elements, shape, expected) => {
    const made = array(datatype, elements, shape);
    expect(made.toArray()).toEqual(expected);
    expect(JSON.parse(JSON.stringify({ y: made }))).toEqual({ y: expected });
  });

  it("also of views, in the order of the view", () => {
    const x = array("INT64", BigInt64Array.of(1n, 2n, 3n, 4n, 5n, 6n), [2, 3]);
    expect(x.pick(1, null).toArray()).toEqual([4, 5, 6]);
    expect(x.pick(1, 2).toArray()).toBe(6);
    expect(x.pick(1, 2).pick().toArray()).toBe(6);
    expect(x.transpose(1, 0).toArray()).toEqual([[1, 4], [2, 5], [3, 6]]); // biome-ignore format: a matrix
    expect(x.lo(0, 1).hi(2, 1).toArray()).toEqual([[2], [5]]);
    expect(x.step(1, -2).toArray()).toEqual([[3, 1], [6, 4]]); // biome-ignore format: a matrix
    const names = array("BYTES", ["a", "b", "c", "d"].map(utf8), [2, 2]);
    expect(names.transpose(1, 0).lo(1).toArray()).toEqual([["b", "d"]]);
    expect(ndArrayLike(array("BOOL", Uint8Array.of(1, 0), [2]), Uint8Array.of(1), [1])).toMatchObject({
      toArray: expect.any(Function),
    });
    expect(JSON.stringify(ndArrayLike(array("BOOL", Uint8Array.of(1, 0), [2]), Uint8Array.of(1), [1]))).toBe(
      "[true]",
    );
  });

  it("without a trace on the arrays of the ndarray package", () => {
    array("FP32", new Float32Array(4), [2, 2]).toArray();
    expect(ndarray(new Float32Array(4), [2, 2])).not.toHaveProperty("toJSON");
    expect(ndarray([1, 2])).not.toHaveProperty("toArray");
  });

  it("whose strides stay inside the elements", () => {
    const x = array("FP32", new Float32Array(4), [2, 2]);
    x.stride[0] = 9;
    expect(() => JSON.stringify(x)).toThrow(
      "ndarray of shape [2,2] and stride [9,1]: expected more elements than its 4",
    );
  });
});
