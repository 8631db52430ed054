import { describe, expect, test } from "vitest";
import { decodeMessage, encodeMessage, inference, typedElements } from "../../src/grpc/index.js";

const { InferParameter, InferTensorContents, SystemSharedMemoryRegisterRequest } = inference;

describe("codec keeps wide integers", () => {
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
});

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

describe("packed values", () => {
  const { InferTensorContents } = inference;

  /** Bytes of a packed field with these contents. */
  function packed(field: number, contents: Uint8Array): Buffer {
    const head = [(field << 3) | 2];
    let rest = contents.length;
    for (; rest > 0x7f; rest >>>= 7) head.push((rest & 0x7f) | 0x80);
    return Buffer.concat([Buffer.from([...head, rest]), contents]);
  }

  const elements = (bytes: Uint8Array, datatype: string) =>
    typedElements(decodeMessage(InferTensorContents, bytes), datatype, "input tensor 'X' for model 'M'");

  describe("packed tensor contents", () => {
    test.each([
      ["BOOL", { boolContents: [true, false, true] }, Uint8Array.of(1, 0, 1)],
      ["INT8", { intContents: [-128, 0, 127, 300] }, Int8Array.of(-128, 0, 127, 44)],
      ["INT16", { intContents: [-32768, 300] }, Int16Array.of(-32768, 300)],
      ["INT32", { intContents: [-(2 ** 31), -1, 2 ** 31 - 1] }, Int32Array.of(-(2 ** 31), -1, 2 ** 31 - 1)],
      ["UINT8", { uintContents: [0, 255] }, Uint8Array.of(0, 255)],
      ["UINT16", { uintContents: [65535] }, Uint16Array.of(65535)],
      ["UINT32", { uintContents: [2 ** 32 - 1, 128] }, Uint32Array.of(2 ** 32 - 1, 128)],
      [
        "INT64",
        { int64Contents: [-1, -(2n ** 63n), 2 ** 40] },
        BigInt64Array.of(-1n, -(2n ** 63n), 2n ** 40n),
      ],
      ["UINT64", { uint64Contents: [2n ** 64n - 1n, 1] }, BigUint64Array.of(2n ** 64n - 1n, 1n)],
      ["FP32", { fp32Contents: [0.5, Number.NaN] }, Float32Array.of(0.5, Number.NaN)],
      ["FP64", { fp64Contents: [0.1, -0] }, Float64Array.of(0.1, -0)],
    ])("of %s are read exactly", (datatype, contents, expected) => {
      expect(elements(encodeMessage(InferTensorContents, contents as never), datatype)).toEqual(expected);
    });

    test("of a million booleans take a byte each", () => {
      const decoded = decodeMessage(InferTensorContents, packed(1, new Uint8Array(1_000_000).fill(1)));
      expect(decoded.boolContents).toBeInstanceOf(Uint8Array);
      expect((decoded.boolContents as unknown as Uint8Array).byteLength).toBe(1_000_000);
      expect(typedElements(decoded, "BOOL", "input")).toBe(decoded.boolContents);
    });

    test("are joined when a field comes in parts, packed and not", () => {
      const one = Buffer.of(1 << 3, 1);
      const parts = [packed(1, Buffer.of(0, 1)), one, packed(1, Buffer.of(1, 0)), one];
      expect(elements(Buffer.concat(parts), "BOOL")).toEqual(Uint8Array.of(0, 1, 1, 1, 0, 1));
      const wide = [packed(3, Buffer.of(5)), Buffer.of(3 << 3, 7)];
      expect(elements(Buffer.concat(wide), "INT64")).toEqual(BigInt64Array.of(5n, 7n));
    });

    test("with longer varints than necessary have the values of the short ones", () => {
      expect(elements(packed(1, Buffer.of(0x80, 0x00, 0x80, 0x01)), "BOOL")).toEqual(Uint8Array.of(0, 1));
      expect(elements(packed(4, Buffer.of(0x85, 0x80, 0x00)), "UINT8")).toEqual(Uint8Array.of(5));
    });

    test.each([
      ["a varint that does not end", packed(1, Buffer.of(0x80))],
      ["a varint of eleven bytes", packed(3, Buffer.from([...Array(10).fill(0x80), 1]))],
      ["a part of a number", packed(6, Buffer.of(1, 2, 3))],
      ["fewer bytes than announced", packed(1, Buffer.alloc(10)).subarray(0, 5)],
    ])("with %s are rejected", (_, bytes) => {
      expect(() => decodeMessage(InferTensorContents, bytes)).toThrow();
    });
  });
});
