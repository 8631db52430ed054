import { Tensor } from "@tritonjs/core";
import { expect, it } from "vitest";
import { classify } from "../src/encode/classification.js";

function classes(tensor: Tensor, count: number, batched = false, labels?: string[]) {
  const result = classify(tensor, count, batched, labels);
  return {
    shape: result.shape,
    texts: (result.elements as Uint8Array[]).map((text) => Buffer.from(text).toString()),
  };
}

const scores = Tensor.fromElements("FP32", [2, 3], Float32Array.of(0.1, 0.7, -0.5, 4, 3, 2));

it("gives the best of each row", () => {
  expect(classes(scores, 2, true, ["cat", "dog", "fish"])).toEqual({
    shape: [2, 2],
    texts: ["0.700000:1:dog", "0.100000:0:cat", "4.000000:0:cat", "3.000000:1:dog"],
  });
});

it("takes a tensor without rows as one list, and gives no more than there are", () => {
  expect(
    classes(Tensor.fromElements("INT64", [3], BigInt64Array.of(-9n, 7n, 9223372036854775807n)), 9),
  ).toEqual({
    shape: [3],
    texts: ["9223372036854775807:2", "7:1", "-9:0"],
  });
});

it("leaves out labels that are missing", () => {
  expect(classes(scores, 1, true, ["cat"]).texts).toEqual(["0.700000:1", "4.000000:0:cat"]);
});

it("prints floating point as C++ does", () => {
  const values = Float64Array.of(1e10, 1e-9, 123456.7890625, 0.0078125, 1e22, Infinity, -0);
  expect(classes(Tensor.fromElements("FP64", [7], values), 7).texts).toEqual([
    "inf:5",
    "10000000000000000000000.000000:4",
    "10000000000.000000:0",
    "123456.789062:2",
    "0.007812:3",
    "0.000000:1",
    "-0.000000:6",
  ]);
});

it("refuses what has no order and what is too large", () => {
  expect(() => classes(Tensor.fromElements("BOOL", [1], Uint8Array.of(1)), 1)).toThrow(
    "class result not available for output due to unsupported type 'BOOL'",
  );
  expect(() => classes(Tensor.fromElements("BYTES", [1], [Uint8Array.of(1)]), 1)).toThrow(
    "unsupported type 'BYTES'",
  );
  expect(() => classes(Tensor.fromElements("UINT8", [1_000_001], new Uint8Array(1_000_001)), 1)).toThrow(
    "classification output tensor too large",
  );
});

it("classifies an empty tensor as nothing", () => {
  expect(classes(Tensor.fromElements("INT32", [0], new Int32Array(0)), 1)).toEqual({ shape: [0], texts: [] });
});
