import { Tensor } from "@tritonjs/core";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { writeTensorData } from "../../src/infer/infer-response.js";
import { readJsonTensor } from "../../src/infer/json-tensor.js";
import { parseJson } from "../../src/json/parse-json.js";
import { ByteWriter } from "../../src/json/write-json.js";

const LIMIT = 1 << 20;

function read(datatype: string, shape: (number | bigint)[], data: string): Tensor {
  return readJsonTensor(
    { name: "X", datatype, shape, scalar: false },
    parseJson(Buffer.from(`{"data":${data}}`)),
    LIMIT,
  );
}

const arrays = {
  INT8: [Int8Array, fc.int8Array()],
  INT16: [Int16Array, fc.int16Array()],
  INT32: [Int32Array, fc.int32Array()],
  INT64: [BigInt64Array, fc.bigInt64Array()],
  UINT8: [Uint8Array, fc.uint8Array()],
  UINT16: [Uint16Array, fc.uint16Array()],
  UINT32: [Uint32Array, fc.uint32Array()],
  UINT64: [BigUint64Array, fc.bigUint64Array()],
  FP32: [Float32Array, fc.float32Array()],
  FP64: [Float64Array, fc.float64Array()],
} as const;

describe.each(Object.entries(arrays))("a JSON tensor of %s", (datatype, [, arbitrary]) => {
  it("reads back what was written", () => {
    fc.assert(
      fc.property(arbitrary as fc.Arbitrary<Float64Array>, (elements) => {
        const tensor = Tensor.fromElements(datatype as "FP64", [elements.length], elements as never);
        const writer = new ByteWriter();
        writeTensorData(writer, tensor);
        expect(read(datatype, [elements.length], writer.bytes().toString()).elements).toEqual(
          elements.length === 0 ? new (elements.constructor as Float64ArrayConstructor)(0) : elements,
        );
      }),
    );
  });

  it("is the same from packed and from scattered numbers", () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 2 ** 40 }), { minLength: 1 }), (numbers) => {
        const packed = read(datatype, [numbers.length], JSON.stringify(numbers));
        // An empty array prevents packing.
        const scattered = read(datatype, [numbers.length], `[${numbers.join(",[],")}]`);
        expect(scattered.elements).toEqual(packed.elements);
      }),
    );
  });
});

it("JSON data may be nested in any way", () => {
  expect(read("FP32", [2, 3], "[1,[2,[3,4]],[[5]],[],6]").elements).toEqual(
    Float32Array.of(1, 2, 3, 4, 5, 6),
  );
});

it("integers outside the type wrap around", () => {
  expect(read("INT8", [3], "[128,-129,300]").elements).toEqual(Int8Array.of(-128, 127, 44));
  expect(read("UINT32", [1], "[18446744073709551615]").elements).toEqual(Uint32Array.of(2 ** 32 - 1));
});

it("doubles too large for FP32 become infinity", () => {
  expect(read("FP32", [1], "[1e39]").elements).toEqual(Float32Array.of(Infinity));
});

it("the data of a tensor without elements is not checked", () => {
  expect(read("INT32", [0], '[1,"x"]').byteLength).toBe(0);
});

it.each([
  ["INT32", "[1.0]", "attempt to access JSON non-signed-integer as signed-integer"],
  ["INT32", '["1"]', "attempt to access JSON non-signed-integer as signed-integer"],
  ["INT64", "[9223372036854775808]", "attempt to access JSON non-signed-integer as signed-integer"],
  ["UINT8", "[-1]", "attempt to access JSON non-unsigned-integer as unsigned-integer"],
  ["BOOL", "[1]", "attempt to access JSON non-boolean as boolean"],
  ["FP32", "[null]", "attempt to access JSON non-number as double"],
  ["FP32", "[1,2]", "Shape does not match true shape of 'data' field"],
  ["FP32", "[]", "Shape does not match true shape of 'data' field"],
  ["FP32", "5", "attempt to access JSON non-array as array"],
])("JSON data of %s is rejected when it is %s", (datatype, data, fault) => {
  expect(() => read(datatype, [1], data)).toThrow(`Unable to parse 'data': ${fault}`);
});

it("types without a JSON form, unknown types and oversized tensors are rejected", () => {
  expect(() => read("FP16", [1], "[1]")).toThrow(
    "receiving FP16 data via JSON is not supported. Please use the binary data format for input X",
  );
  expect(() => read("int32", [1], "[1]")).toThrow("invalid datatype for input X");
  expect(() => read("INT32", [LIMIT], "[1]")).toThrow("JSON input 'X' has a byte_size (4194304 bytes)");
  expect(() => read("INT32", [2n ** 63n - 1n], "[1]")).toThrow("byte size overflow for input 'X'");
  expect(() => read("INT32", [2n ** 62n, 4], "[1]")).toThrow("causes total element count to exceed");
});

it.each(["INT32", "BYTES"])("%s data nested 100 deep is rejected, and 99 deep is accepted", (datatype) => {
  const nested = (depth: number) =>
    "[".repeat(depth) + (datatype === "BYTES" ? '"x"' : "7") + "]".repeat(depth);
  expect(read(datatype, [1], nested(99)).shape).toEqual([1]);
  expect(() => read(datatype, [1], nested(100))).toThrow(
    "JSON nesting depth exceeds maximum allowed limit (100)",
  );
  expect(() => read(datatype, [1], nested(50_000))).toThrow(
    "JSON nesting depth exceeds maximum allowed limit (100)",
  );
});

it("strings are read as their bytes", () => {
  const tensor = readJsonTensor(
    { name: "X", datatype: "BYTES", shape: [2], scalar: false },
    parseJson(Buffer.from([...Buffer.from('{"data":["\\u0000a","'), 0xff, 0xfe, ...Buffer.from('"]}')])),
    LIMIT,
  );
  expect((tensor.elements as Uint8Array[]).map((element) => [...element])).toEqual([
    [0, 0x61],
    [0xff, 0xfe],
  ]);
});
