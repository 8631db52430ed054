import { describe, expect, it } from "vitest";
import { send } from "../support/send.js";
import { expectAnswers, input, useServer } from "./bad-inputs.js";

const server = useServer();

const request = (members: object, more: object = {}) => ({
  inputs: [{ name: "IN", datatype: "FP32", shape: [1], ...members }],
  ...more,
});

const shape = (value: unknown) => request({ shape: value, data: [1] });

describe("wrong shapes", () => {
  expectAnswers(server, {
    "500 Unable to parse 'shape': attempt to access non-existing object member 'shape'": {
      missing: { body: { inputs: [{ name: "IN", datatype: "FP32", data: [1] }] } },
    },
    "500 Unable to parse 'shape': attempt to access JSON non-array as array": {
      null: { body: shape(null) },
      "a string": { body: shape("1") },
      "a number": { body: shape(1) },
    },
    "500 Unable to parse 'shape': attempt to access JSON non-unsigned-integer as unsigned-integer": {
      strings: { body: shape(["1"]) },
      floats: { body: shape([1.5]) },
      "a whole float": '{"inputs":[{"name":"IN","datatype":"FP32","shape":[1.0],"data":[1]}]}',
      negative: { body: shape([-1]) },
      nested: { body: shape([[1]]) },
      "beyond 64 bits":
        '{"inputs":[{"name":"IN","datatype":"FP32","shape":[99999999999999999999],"data":[1]}]}',
    },
    "400 JSON input 'IN' has a byte_size (4398046511104 bytes) that exceeds the maximum allowed value of": {
      huge: { body: shape([2 ** 40]) },
    },
    "400 invalid shape for input 'IN': shape [-9223372036854775808] contains one or more invalid": {
      "2^63 and more":
        '{"inputs":[{"name":"IN","datatype":"FP32","shape":[9223372036854775808],"data":[1]}]}',
    },
    "400 unexpected shape for input 'IN' for model 'fp32'. Expected [-1], got": {
      "300 dimensions": { body: shape(Array(300).fill(1)) },
    },
    "400 invalid shape for input 'IN': shape [4294967296,4294967296,4294967296] causes total element": {
      "a product that overflows": { body: shape([2 ** 32, 2 ** 32, 2 ** 32]) },
    },
    "400 invalid shape for input 'IN': shape [4294967296,4294967296,0] causes total element count to": {
      "a product that overflows to zero": { body: shape(["4294967296", "4294967296"].map(Number).concat(0)) },
    },
    "400 unexpected shape for input 'IN' for model 'fp32'. Expected [-1], got [].": {
      empty: { body: shape([]) },
    },
  });
});

describe("wrong tensor data", () => {
  const typed = (datatype: string, data: unknown, length = 1) => ({
    body: input(datatype, [length], data),
    model: datatype.toLowerCase(),
  });
  const literal = (datatype: string, data: string) => ({
    ...typed(datatype, "DATA"),
    body: input(datatype, [1], "DATA").replace('"DATA"', data),
  });
  expectAnswers(server, {
    "500 Unable to parse 'data': Shape does not match true shape of 'data' field": {
      "too short": typed("FP32", [1], 2),
      "too long": typed("FP32", [1, 2, 3], 2),
      ragged: typed("FP32", [[1, 2], [3]], 4),
    },
    "500 Unable to parse 'data': attempt to access JSON non-array as array": {
      "a string": typed("FP32", "1"),
      null: typed("FP32", null),
    },
    "500 Unable to parse 'data': attempt to access JSON non-number as double": {
      nulls: typed("FP32", [null]),
      "strings for numbers": typed("FP32", ["1"]),
      mixed: typed("FP32", [1, "2"], 2),
      "booleans for numbers": typed("FP32", [true]),
      objects: typed("FP32", [{}]),
    },
    "500 Unable to parse JSON bytes array: attempt to access JSON non-string as string": {
      "numbers for strings": typed("BYTES", [1]),
    },
    "500 Unable to parse 'data': attempt to access JSON non-boolean as boolean": {
      "numbers for booleans": typed("BOOL", [1]),
    },
    "500 Unable to parse 'data': attempt to access JSON non-signed-integer as signed-integer": {
      "a fraction for an integer": typed("INT8", [1.5]),
      "a whole float for an integer": literal("INT64", "[1.0]"),
      "an exponent for an integer": literal("INT64", "[1e2]"),
      "below 64 bits": literal("INT64", "[-9223372036854775809]"),
      "a 64-bit integer as string": typed("INT64", ["9007199254740993"]),
    },
    "500 Unable to parse 'data': attempt to access JSON non-unsigned-integer as unsigned-integer": {
      "negative for unsigned": typed("UINT8", [-1]),
      "beyond 64 bits": literal("UINT64", "[18446744073709551616]"),
    },
    "400 invalid datatype for input IN": {
      "an unknown data type": input("FP31", [1], [1]),
      "a data type in lower case": input("fp32", [1], [1]),
    },
    "400 inference input 'IN' data-type is 'INT8', but model 'fp32' expects 'FP32'": {
      "another data type": input("INT8", [1], [1]),
    },
    "400 receiving FP16 data via JSON is not supported. Please use the binary data format for input IN": {
      "FP16 in JSON": typed("FP16", [1]),
    },
    "400 receiving BF16 data via JSON is not supported. Please use the binary data format for input IN": {
      "BF16 in JSON": typed("BF16", [1]),
    },
  });
});

describe("unusual tensor data that is accepted as Triton accepts it", () => {
  expectAnswers(server, {
    '200 "data":[44]': {
      "an integer out of range for INT8, which wraps": { model: "int8", body: input("INT8", [1], [300]) },
    },
    "200 [9007199254740993]": {
      "an INT64 above 2^53, which stays exact": {
        model: "int64",
        body: input("INT64", [1], "X").replace('"X"', "[9007199254740993]"),
      },
    },
    '200 ["a\\u0000b"]': { "NUL in a string": { model: "bytes", body: input("BYTES", [1], ["a\0b"]) } },
    '200 "data":[]': { "data where the shape has no elements": input("FP32", [0], [1, 2]) },
    '200 "data":[1.0,2.0,3.0,4.0]': { "an unusual nesting": input("FP32", [4], [[1], [[2, 3]], 4]) },
  });
});

/** A request whose only input follows the JSON; the stated size is that of the bytes unless given. */
function binary(datatype: string, shape: readonly number[], bytes: Uint8Array, size: unknown = bytes.length) {
  const parameters = { binary_data_size: size };
  const json = JSON.stringify({
    parameters: { binary_data_output: true },
    inputs: [{ name: "IN", datatype, shape, parameters }],
  });
  return {
    model: datatype.toLowerCase(),
    headers: { "inference-header-content-length": json.length },
    body: Buffer.concat([Buffer.from(json), bytes]),
  };
}

const zeros = (length: number) => new Uint8Array(length);

const prefixed = (length: number, text: string) => {
  const bytes = Buffer.alloc(4 + text.length, text);
  bytes.writeUInt32LE(length, 0);
  bytes.write(text, 4);
  return bytes;
};

describe("wrong binary sizes", () => {
  expectAnswers(server, {
    "500 Unable to parse 'binary_data_size': attempt to access JSON non-unsigned-integer as": {
      "-1": binary("FP32", [1], zeros(4), -1),
      "a string": binary("FP32", [1], zeros(4), "4"),
      "a fraction": binary("FP32", [1], zeros(4), 4.5),
      "2^64": binary("FP32", [1], zeros(4), 2 ** 64),
    },
    "400 unexpected size for input 'IN', expecting 1 additional bytes for model 'fp32'": {
      "more than the body has": binary("FP32", [1], zeros(4), 5),
    },
    "400 unexpected additional input data for model 'fp32'": {
      "less than the body has": binary("FP32", [1], zeros(8), 4),
    },
    "400 input byte size mismatch for input 'IN' for model 'fp32'. Expected 8, got 4": {
      "a size that differs from the shape": binary("FP32", [2], zeros(4)),
    },
    "400 input byte size mismatch for input 'IN' for model 'fp32'. Expected 4, got 5": {
      "not a multiple of the element size": binary("FP32", [1], zeros(5)),
    },
    "400 input byte size mismatch for input 'IN' for model 'fp32'. Expected 4, got 0": {
      "zero for a tensor with elements": binary("FP32", [1], zeros(0)),
    },
    "400 input byte size mismatch for input 'IN' for model 'fp32'. Expected 4398046511104, got 4": {
      "a shape of 2^40": binary("FP32", [2 ** 40], zeros(4)),
    },
    "400 unexpected size for input 'IN', expecting 4 additional bytes for model 'fp32'": {
      "no header length": { ...binary("FP32", [1], zeros(4)), headers: {} },
    },
  });
});

describe("broken binary strings", () => {
  expectAnswers(server, {
    "400 incomplete string data for inference input 'IN', expecting string of length 9 but only 3 bytes": {
      "a length past the end": binary("BYTES", [1], prefixed(9, "abc")),
    },
    "400 incomplete string data for inference input 'IN', expecting string of length 4294967295 but only": {
      "a length of 0xFFFFFFFF": binary("BYTES", [1], prefixed(0xffffffff, "abc")),
    },
    "400 incomplete string length indicator for inference input 'IN' for model 'bytes', expecting 4": {
      "bytes left over": binary("BYTES", [1], prefixed(2, "abc")),
      "half a length": binary("BYTES", [1], zeros(2)),
    },
    "400 unexpected number of string elements 2 for inference input 'IN' for model 'bytes', expecting 1": {
      "more elements than the shape": binary("BYTES", [1], zeros(8)),
    },
    "400 expected 3 string elements for inference input 'IN' for model 'bytes', got 2": {
      "fewer elements than the shape": binary("BYTES", [3], zeros(8)),
    },
    "400 expected 2147483648 string elements for inference input 'IN' for model 'bytes', got 2": {
      "2^31 elements": binary("BYTES", [2 ** 31], zeros(8)),
    },
  });
});

describe("wrong header lengths", () => {
  const good = binary("FP32", [1], zeros(4));
  const length = (good.headers as Record<string, number>)["inference-header-content-length"]!;
  const withLength = (header: string | readonly string[]) => ({
    ...good,
    headers: { "inference-header-content-length": header as string[] },
  });
  expectAnswers(server, {
    "400 inference header size should be in range (0, 137), got: -1": { "-1": withLength("-1") },
    "500 failed to parse the request JSON buffer: Missing a name for object member. at 1": {
      "1e3": withLength("1e3"),
      "1.5": withLength("1.5"),
    },
    "400 input byte size mismatch for input 'raw_input' for model 'fp32'. Expected 136, got 137": {
      "0x10": withLength("0x10"),
      "not a number": withLength("abc"),
    },
    "400 inference header size should be in range (0, 137), got: 9007199254740993": {
      "9007199254740993": withLength("9007199254740993"),
    },
    "400 inference header size should be in range (0, 137), got: 99999999999999999999": {
      "twenty nines": withLength("9".repeat(20)),
    },
    "400 inference header size should be in range (0, 137), got: 138": {
      "a length beyond the body": withLength(String(length + 5)),
    },
    "500 failed to parse the request JSON buffer: Missing a comma or '}' after an object member. at 132": {
      "a length inside the JSON": withLength(String(length - 1)),
    },
    "500 failed to parse the request JSON buffer: Missing a closing quotation mark in string. at 8": {
      "a length inside a character": { ...withLength("8"), body: Buffer.from('{"id":"é","inputs":[]}') },
    },
    "500 failed to parse the request JSON buffer: Missing a closing quotation mark in string. at 3": {
      "two lengths, of which the first counts": withLength(["3", String(length)]),
    },
    "200": { "a number after a space": withLength(` ${length}`) },
  });
});

describe("binary tensors with unusual bytes", () => {
  const bitsOf = async (datatype: string, bytes: Uint8Array, elementSize: number) => {
    const { body, headers, model } = binary(datatype, [bytes.length / elementSize], bytes);
    const answer = await send(server.port, {
      path: `/v2/models/${model}/infer`,
      headers,
      body: body as Buffer,
    });
    expect(answer.status).toBe(200);
    return answer.body.subarray(Number(answer.headers["inference-header-content-length"]));
  };

  it.each([
    ["FP32 NaNs with a payload", "FP32", Uint8Array.of(1, 2, 0xa0, 0x7f, 1, 0, 0x80, 0xff), 4],
    ["FP64 NaNs with a payload", "FP64", Uint8Array.of(9, 8, 7, 6, 5, 4, 0xf1, 0x7f), 8],
    ["FP16", "FP16", Uint8Array.of(1, 0x7c, 0xff, 0xff), 2],
    ["BF16", "BF16", Uint8Array.of(0x81, 0x7f), 2],
    ["BOOL of 2 to 255", "BOOL", Uint8Array.of(0, 1, 2, 128, 255), 1],
    ["64-bit integers", "UINT64", Uint8Array.of(255, 255, 255, 255, 255, 255, 255, 255), 8],
  ])("keeps the bits of %s", async (_what, datatype, bytes, size) => {
    expect([...(await bitsOf(datatype, bytes, size))]).toEqual([...bytes]);
  });

  it("keeps the bits of 8-byte types behind JSON of any length", async () => {
    for (let pad = 0; pad < 8; pad++) {
      const json = JSON.stringify({
        id: "x".repeat(pad),
        inputs: [{ name: "IN", datatype: "INT64", shape: [2], parameters: { binary_data_size: 16 } }],
      });
      const values = BigInt64Array.of(1n, -2n);
      const answer = await send(server.port, {
        path: "/v2/models/int64/infer",
        headers: { "inference-header-content-length": json.length },
        body: Buffer.concat([Buffer.from(json), new Uint8Array(values.buffer)]),
      });
      expect(answer.text).toContain('"data":[1,-2]');
    }
  });
});
