import { Tensor } from "@tritonjs/core";
import { classify } from "@tritonjs/core/frontend";
import { describe, expect, test } from "vitest";

function classes(tensor: Tensor, count: number, batched = false, labels?: readonly string[]) {
  const result = classify(tensor, count, batched, labels);
  expect(result.datatype).toBe("BYTES");
  return {
    shape: result.shape,
    texts: (result.elements as Uint8Array[]).map((text) => Buffer.from(text).toString()),
  };
}

describe("classification", () => {
  const scores = Tensor.fromElements("FP32", [4], Float32Array.of(0.25, 3.5, -1, 2));

  test("returns the largest elements, largest first", () => {
    expect(classes(scores, 2)).toEqual({ shape: [2], texts: ["3.500000:1", "2.000000:3"] });
  });

  test("returns no more classes than there are elements", () => {
    expect(classes(scores, 10).shape).toEqual([4]);
  });

  test("adds nothing for an empty label", () => {
    expect(classes(scores, 2, false, ["cat", "", "", "cow"]).texts).toEqual(["3.500000:1", "2.000000:3:cow"]);
  });

  test("adds labels as far as they exist", () => {
    expect(classes(scores, 3, false, ["cat", "dog"]).texts).toEqual([
      "3.500000:1:dog",
      "2.000000:3",
      "0.250000:0:cat",
    ]);
  });

  test("works row by row along a batch axis", () => {
    const batch = Tensor.fromElements("INT32", [2, 2], Int32Array.of(1, 2, 4, 3));
    expect(classes(batch, 1, true)).toEqual({ shape: [2, 1], texts: ["2:1", "4:0"] });
    expect(classes(batch, 1, false)).toEqual({ shape: [1], texts: ["4:2"] });
  });

  test("prints integers plainly, the widest exactly", () => {
    const wide = Tensor.fromElements("UINT64", [2], BigUint64Array.of(1n, 2n ** 64n - 1n));
    expect(classes(wide, 2).texts).toEqual(["18446744073709551615:1", "1:0"]);
  });

  test("keeps the order of equal elements and puts NaN last", () => {
    const ties = Tensor.fromElements(
      "FP64",
      [4],
      Float64Array.of(Number.NaN, 1, Number.POSITIVE_INFINITY, 1),
    );
    expect(classes(ties, 4).texts).toEqual(["inf:2", "1.000000:1", "1.000000:3", "nan:0"]);
  });

  test("is empty for an empty tensor", () => {
    const empty = Tensor.fromElements("FP32", [0], new Float32Array(0));
    expect(classes(empty, 3)).toEqual({ shape: [0], texts: [] });
  });

  test.each(["BOOL", "FP16", "BF16", "BYTES"] as const)("rejects %s", (datatype) => {
    const tensor = Tensor.fromBytes(datatype, [1], new Uint8Array(4));
    expect(() => classify(tensor, 1, false, undefined)).toThrow(
      `class result not available for output due to unsupported type '${datatype}'`,
    );
  });

  test("rejects more than a million elements", () => {
    const tensor = Tensor.fromElements("INT8", [1_000_001], new Int8Array(1_000_001));
    expect(() => classify(tensor, 1, false, undefined)).toThrow("classification output tensor too large");
  });
});

describe("the printed value of a class", () => {
  // As printf("%f") prints them.
  test.each([
    [0, "0.000000"],
    [-0, "-0.000000"],
    [-1e-9, "-0.000000"],
    [0.0078125, "0.007812"],
    [0.0234375, "0.023438"],
    [-0.0078125, "-0.007812"],
    [0.1234565, "0.123456"],
    [1.0000005, "1.000001"],
    [1e21, "1000000000000000000000.000000"],
    [2 ** 100, "1267650600228229401496703205376.000000"],
    [Number.NaN, "nan"],
    [Number.NEGATIVE_INFINITY, "-inf"],
  ])("%d is printed as %s", (value, text) => {
    const scores = Tensor.fromElements("FP64", [1], Float64Array.of(value));
    expect(classes(scores, 1).texts).toEqual([`${text}:0`]);
  });
});
