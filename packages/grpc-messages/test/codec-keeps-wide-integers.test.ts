import { describe, expect, test } from "vitest";
import { decodeMessage, encodeMessage, inference } from "../src/index.js";

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
  ])("%d is a number", (int64Param) => {
    expect(decodeMessage(InferParameter, encodeMessage(InferParameter, { int64Param })).int64Param).toBe(
      int64Param,
    );
  });

  test.each([2n ** 53n, 2n ** 63n - 1n, -(2n ** 63n), -(2n ** 53n)])("%d is a bigint", (int64Param) => {
    expect(decodeMessage(InferParameter, encodeMessage(InferParameter, { int64Param })).int64Param).toBe(
      int64Param,
    );
  });

  test.each([2n ** 53n, 2n ** 63n, 2n ** 64n - 1n])("%d is an unsigned bigint", (uint64Param) => {
    expect(decodeMessage(InferParameter, encodeMessage(InferParameter, { uint64Param })).uint64Param).toBe(
      uint64Param,
    );
  });

  test("in lists are exact", () => {
    const int64Contents = [-1, 2n ** 62n, 3];
    const uint64Contents = [2n ** 64n - 1n, 0];
    const bytes = encodeMessage(InferTensorContents, { int64Contents, uint64Contents });
    expect(decodeMessage(InferTensorContents, bytes)).toMatchObject({ int64Contents, uint64Contents });
  });

  test("that are absent are zero", () => {
    expect(decodeMessage(SystemSharedMemoryRegisterRequest, new Uint8Array(0)).byteSize).toBe(0);
  });

  test("that never end are refused", () => {
    expect(() => decodeMessage(InferParameter, Uint8Array.of(0x10, ...Array(11).fill(0xff)))).toThrow();
    expect(() => decodeMessage(InferParameter, Uint8Array.of(0x10, 0xff))).toThrow();
  });
});

test("text that is not UTF-8 is refused", () => {
  expect(() => decodeMessage(InferParameter, Uint8Array.of(0x1a, 1, 0xff))).toThrow();
});

test("any cut of a message is refused or read as a shorter one", () => {
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
