import { describe } from "vitest";
import { expectAnswers, input, useServer } from "./bad-inputs.js";

const server = useServer();
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
    "too short": {
      ...typed("FP32", [1], 2),
      status: 500,
      text: "Unable to parse 'data': Shape does not match true shape of 'data' field",
    },
    "too long": {
      ...typed("FP32", [1, 2, 3], 2),
      status: 500,
      text: "Unable to parse 'data': Shape does not match true shape of 'data' field",
    },
    ragged: {
      ...typed("FP32", [[1, 2], [3]], 4),
      status: 500,
      text: "Unable to parse 'data': Shape does not match true shape of 'data' field",
    },
    "a string": {
      ...typed("FP32", "1"),
      status: 500,
      text: "Unable to parse 'data': attempt to access JSON non-array as array",
    },
    null: {
      ...typed("FP32", null),
      status: 500,
      text: "Unable to parse 'data': attempt to access JSON non-array as array",
    },
    nulls: {
      ...typed("FP32", [null]),
      status: 500,
      text: "Unable to parse 'data': attempt to access JSON non-number as double",
    },
    "strings for numbers": {
      ...typed("FP32", ["1"]),
      status: 500,
      text: "Unable to parse 'data': attempt to access JSON non-number as double",
    },
    "numbers for strings": {
      ...typed("BYTES", [1]),
      status: 500,
      text: "Unable to parse JSON bytes array: attempt to access JSON non-string as string",
    },
    mixed: {
      ...typed("FP32", [1, "2"], 2),
      status: 500,
      text: "Unable to parse 'data': attempt to access JSON non-number as double",
    },
    "numbers for booleans": {
      ...typed("BOOL", [1]),
      status: 500,
      text: "Unable to parse 'data': attempt to access JSON non-boolean as boolean",
    },
    "booleans for numbers": {
      ...typed("FP32", [true]),
      status: 500,
      text: "Unable to parse 'data': attempt to access JSON non-number as double",
    },
    objects: {
      ...typed("FP32", [{}]),
      status: 500,
      text: "Unable to parse 'data': attempt to access JSON non-number as double",
    },
    "a fraction for an integer": {
      ...typed("INT8", [1.5]),
      status: 500,
      text: "Unable to parse 'data': attempt to access JSON non-signed-integer as signed-integer",
    },
    "a whole float for an integer": {
      ...literal("INT64", "[1.0]"),
      status: 500,
      text: "Unable to parse 'data': attempt to access JSON non-signed-integer as signed-integer",
    },
    "an exponent for an integer": {
      ...literal("INT64", "[1e2]"),
      status: 500,
      text: "Unable to parse 'data': attempt to access JSON non-signed-integer as signed-integer",
    },
    "negative for unsigned": {
      ...typed("UINT8", [-1]),
      status: 500,
      text: "Unable to parse 'data': attempt to access JSON non-unsigned-integer as unsigned-integer",
    },
    "beyond 64 bits": {
      ...literal("UINT64", "[18446744073709551616]"),
      status: 500,
      text: "Unable to parse 'data': attempt to access JSON non-unsigned-integer as unsigned-integer",
    },
    "below 64 bits": {
      ...literal("INT64", "[-9223372036854775809]"),
      status: 500,
      text: "Unable to parse 'data': attempt to access JSON non-signed-integer as signed-integer",
    },
    "a 64-bit integer as string": {
      ...typed("INT64", ["9007199254740993"]),
      status: 500,
      text: "Unable to parse 'data': attempt to access JSON non-signed-integer as signed-integer",
    },
    "an unknown data type": {
      body: input("FP31", [1], [1]),
      status: 400,
      text: "invalid datatype for input IN",
    },
    "a data type in lower case": {
      body: input("fp32", [1], [1]),
      status: 400,
      text: "invalid datatype for input IN",
    },
    "another data type": {
      body: input("INT8", [1], [1]),
      status: 400,
      text: "inference input 'IN' data-type is 'INT8', but model 'fp32' expects 'FP32'",
    },
    "FP16 in JSON": {
      ...typed("FP16", [1]),
      status: 400,
      text: "receiving FP16 data via JSON is not supported. Please use the binary data format for input IN",
    },
    "BF16 in JSON": {
      ...typed("BF16", [1]),
      status: 400,
      text: "receiving BF16 data via JSON is not supported. Please use the binary data format for input IN",
    },
  });
});

describe("unusual tensor data that is accepted as Triton accepts it", () => {
  expectAnswers(server, {
    "an integer out of range for INT8, which wraps": {
      model: "int8",
      body: input("INT8", [1], [300]),
      status: 200,
      text: '"data":[44]',
    },
    "an INT64 above 2^53, which stays exact": {
      model: "int64",
      body: input("INT64", [1], "X").replace('"X"', "[9007199254740993]"),
      status: 200,
      text: "[9007199254740993]",
    },
    "NUL in a string": {
      model: "bytes",
      body: input("BYTES", [1], ["a\0b"]),
      status: 200,
      text: '["a\\u0000b"]',
    },
    "data where the shape has no elements": {
      body: input("FP32", [0], [1, 2]),
      status: 200,
      text: '"data":[]',
    },
    "an unusual nesting": {
      body: input("FP32", [4], [[1], [[2, 3]], 4]),
      status: 200,
      text: '"data":[1.0,2.0,3.0,4.0]',
    },
  });
});
