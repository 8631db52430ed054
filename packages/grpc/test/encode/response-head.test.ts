import { expect, test } from "vitest";
import { encodeInferResponseParts, responseHead } from "../../src/infer/infer-response.js";

const response = (shape: number[], modelVersion = "1") => ({
  modelName: "head-test",
  modelVersion,
  outputs: [{ name: "y", datatype: "FP32", shape }],
});
const bytesOf = (message: object) => Buffer.concat(encodeInferResponseParts(message)).toString("hex");

test("the head of a response is encoded again for another version or shape", () => {
  const first = responseHead(response([1, 16]));
  expect(responseHead(response([1, 16]))).toBe(first);
  const [shape, version] = [bytesOf(response([2, 16])), bytesOf(response([2, 16], "2"))];
  expect(shape).toContain("1a020210");
  expect(version).toContain("120132");
});

test("a shape that the model changes later does not change the head of later responses", () => {
  const shape = [1, 16];
  const before = bytesOf(response(shape));
  shape[0] = 9;
  expect(bytesOf(response([1, 16]))).toBe(before);
  expect(bytesOf(response([9, 16]))).not.toBe(before);
});
