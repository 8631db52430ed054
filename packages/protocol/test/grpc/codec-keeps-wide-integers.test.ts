import { describe, expect, test } from "vitest";
import { decodeMessage, encodeMessage, inference } from "../../src/grpc/index.js";

const { InferParameter, InferTensorContents, SystemSharedMemoryRegisterRequest } = inference;

describe("64-bit integers", () => {
  test.each([
    0,
    1,
    127,
    128,
    2 ** 28,
    2 ** 31,
    2 ** 32,
    2 ** 35,
    2 ** 53 - 1,
    -1,
    -128,
    -(2 ** 31),
    -(2 ** 53 - 1),
  ])("%d is decoded as a number", (int64Param) => {
    expect(decodeMessage(InferParameter, encodeMessage(InferParameter, { int64Param })).int64Param).toBe(
      int64Param,
    );
  });

  test.each([2n ** 53n, 2n ** 63n - 1n, -(2n ** 63n), -(2n ** 53n)])(
    "%d is decoded as a bigint",
    (int64Param) => {
      expect(decodeMessage(InferParameter, encodeMessage(InferParameter, { int64Param })).int64Param).toBe(
        int64Param,
      );
    },
  );

  test.each([2n ** 53n, 2n ** 63n, 2n ** 64n - 1n])("%d is decoded as an unsigned bigint", (uint64Param) => {
    expect(decodeMessage(InferParameter, encodeMessage(InferParameter, { uint64Param })).uint64Param).toBe(
      uint64Param,
    );
  });

  test("are exact in lists", () => {
    const int64Contents = [-1, 2n ** 62n, 3];
    const uint64Contents = [2n ** 64n - 1n, 0];
    const bytes = encodeMessage(InferTensorContents, { int64Contents, uint64Contents });
    expect(decodeMessage(InferTensorContents, bytes)).toMatchObject({
      int64Contents: BigInt64Array.of(-1n, 2n ** 62n, 3n),
      uint64Contents: BigUint64Array.of(2n ** 64n - 1n, 0n),
    });
  });

  test("are zero when they are absent", () => {
    expect(decodeMessage(SystemSharedMemoryRegisterRequest, new Uint8Array(0)).byteSize).toBe(0);
  });

  test("are rejected when they do not end", () => {
    expect(() => decodeMessage(InferParameter, Uint8Array.of(0x10, ...Array(11).fill(0xff)))).toThrow();
    expect(() => decodeMessage(InferParameter, Uint8Array.of(0x10, 0xff))).toThrow();
  });
});

test("text that is not UTF-8 is rejected", () => {
  expect(() => decodeMessage(InferParameter, Uint8Array.of(0x1a, 1, 0xff))).toThrow();
});

test("a message cut at any byte is rejected or read as a shorter one", () => {
  const message = encodeMessage(inference.ModelInferRequest, {
    modelName: "m",
    inputs: [
      { name: "X", datatype: "INT64", shape: [2n ** 60n, 3], contents: { int64Contents: [1, 2n ** 60n] } },
    ],
    parameters: { k: { doubleParam: 1.5 } },
    rawInputContents: [new Uint8Array(40)],
  });
  for (let length = 0; length < message.length; length++) {
    try {
      decodeMessage(inference.ModelInferRequest, message.subarray(0, length));
    } catch (error) {
      expect(error).toBeInstanceOf(Error);
    }
  }
});
