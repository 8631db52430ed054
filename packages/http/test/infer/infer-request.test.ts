import { Tensor } from "@tritonjs/core";
import type { ReadyModel } from "@tritonjs/server";
import { SharedMemory } from "@tritonjs/server/internal";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  decodeInferRequest,
  decodeRawRequest,
  inferenceHeaderLength,
} from "../../src/infer/infer-request.js";
import { writeTensorData } from "../../src/infer/infer-response.js";
import { readJsonTensor } from "../../src/infer/json-tensor.js";
import { parseJson } from "../../src/json/parse-json.js";
import { ByteWriter } from "../../src/json/write-json.js";
import { identityConfig } from "../support/identity-service.js";

const LIMIT = 1 << 20;

const noRegions = new SharedMemory(false);

function model(...config: Parameters<typeof identityConfig>): ReadyModel {
  return { name: config[0], version: 1, config: identityConfig(...config), labels: new Map() };
}

const anyModel = model("m", "INT32");

const input = { name: "IN", datatype: "INT32", shape: [1], data: [1] };

function decode(request: unknown, binary: Uint8Array = new Uint8Array(0)) {
  const json = Buffer.from(typeof request === "string" ? request : JSON.stringify(request));
  return decodeInferRequest(anyModel, Buffer.concat([json, binary]), json.length, LIMIT, noRegions);
}

describe("infer request", () => {
  it("decoding any request returns a request or throws a typed error", () => {
    const odd = fc.oneof(
      fc.jsonValue(),
      fc.constantFrom("IN", "INT32", 1, -1, 1.5, [1], { binary_data_size: 1 }),
    );
    const inputs = fc.array(
      fc.record(
        { name: odd, datatype: odd, shape: odd, data: odd, parameters: odd },
        { requiredKeys: ["name", "datatype", "shape"] },
      ),
    );
    const requests = fc.record(
      { id: odd, inputs: fc.oneof(odd, inputs), outputs: odd, parameters: odd },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(requests, fc.uint8Array(), (request, binary) => {
        try {
          decode(request, binary);
        } catch (thrown) {
          expect(thrown).toMatchObject({ name: "TritonError" });
        }
      }),
    );
  });
});

describe("decoding parameters", () => {
  it("applies protocol parameters and passes the rest to the model", () => {
    const init = decode(
      '{"id":"r","parameters":{"sequence_id":18446744073709551615,"sequence_start":true,"sequence_end":false,' +
        '"priority":2,"timeout":5,"binary_data_output":true,"__proto__":1,"s":"x","big":9007199254740993,' +
        '"d":0.5,"b":false,"huge":9223372036854775808},"inputs":[]}',
    );
    expect(init).toMatchObject({
      id: "r",
      correlationId: 18446744073709551615n,
      sequenceStart: true,
      sequenceEnd: false,
      priority: 2,
      queueTimeoutMicroseconds: 5,
    });
    expect(Object.entries(init.parameters ?? {})).toEqual([
      ["__proto__", 1],
      ["s", "x"],
      ["big", 9007199254740993n],
      ["d", 0.5],
      ["b", false],
      ["huge", 2 ** 63],
    ]);
    expect(init.outputs.others).toEqual({ binary: true, classes: 0 });
  });

  it.each([
    [{ triton_x: null }, "parameter keys starting with 'triton_' are reserved"],
    [{ k: [] }, "parameter 'k' has invalid type. It should be either 'int', 'bool', or 'string'."],
    [{ priority: -1 }, "Unable to parse 'priority': attempt to access JSON non-unsigned-integer"],
    [{ timeout: 1.5 }, "Unable to parse 'timeout': attempt to access JSON non-unsigned-integer"],
    [{ sequence_id: 1.5 }, "Unable to parse 'sequence_id': attempt to access JSON non-string as string"],
    [{ sequence_id: "x".repeat(129) }, "string correlation ID cannot be longer than 128 characters"],
    [
      { sequence_start: 1 },
      "Unable to parse 'sequence_start': attempt to access JSON non-boolean as boolean",
    ],
    [[], "failed to get request params.: attempt to get members for non-object"],
  ])("rejects %j", (parameters, fault) => {
    expect(() => decode({ parameters, inputs: [input] })).toThrow(fault);
  });
});

describe("decoding inputs", () => {
  it("reads them from the JSON and from the bytes behind it, in order", () => {
    const init = decode(
      {
        inputs: [
          { name: "a", datatype: "INT8", shape: [2], parameters: { binary_data_size: 2 } },
          { name: "b", datatype: "INT8", shape: [1], data: [9] },
          { name: "c", datatype: "INT8", shape: [1], parameters: { binary_data_size: 1 } },
        ],
      },
      Uint8Array.of(1, 2, 3),
    );
    expect([...init.inputs].map(([name, tensor]) => [name, [...(tensor.elements as Int8Array)]])).toEqual([
      ["a", [1, 2]],
      ["b", [9]],
      ["c", [3]],
    ]);
  });

  it.each([
    [{}, "Unable to parse 'inputs': attempt to access non-existing object member 'inputs'"],
    [{ inputs: {} }, "Unable to parse 'inputs': attempt to access JSON non-array as array"],
    [{ inputs: [5] }, "But no field is set"],
    [{ inputs: [{ ...input, parameters: { binary_data_size: 4 } }] }, "But set 'data' 'binary_data_size'"],
    [
      { inputs: [{ ...input, name: 5 }] },
      "Unable to parse 'name': attempt to access JSON non-string as string",
    ],
    [{ inputs: [{ ...input, shape: [1.5] }] }, "Unable to parse 'shape'"],
    [{ inputs: [{ ...input, shape: [[1]] }] }, "Unable to parse 'shape'"],
    [{ id: "q", inputs: [input, input] }, "[request id: q] input 'IN' already exists in request"],
    [{ id: 5, inputs: [input] }, "Unable to parse 'id': attempt to access JSON non-string as string"],
    [
      { inputs: [{ ...input, data: undefined, parameters: { binary_data_size: 4 } }] },
      "unexpected size for input 'IN', expecting 4 additional bytes for model 'm'",
    ],
    [
      { inputs: [{ ...input, data: undefined, parameters: { binary_data_size: -4 } }] },
      "Unable to parse 'binary_data_size'",
    ],
  ])("rejects %j", (request, fault) => {
    expect(() => decode(request)).toThrow(fault);
  });

  it("rejects surplus bytes", () => {
    expect(() => decode({ inputs: [input] }, Uint8Array.of(1))).toThrow(
      "unexpected additional input data for model 'm'",
    );
  });
});

describe("decoding requested outputs", () => {
  it("gives each a form, and the first of duplicates counts", () => {
    const init = decode({
      parameters: { binary_data_output: true },
      inputs: [input],
      outputs: [
        { name: "a", parameters: { binary_data: true } },
        { name: "b", parameters: { classification: 3 } },
        { name: "a" },
        { name: "c", parameters: null },
      ],
    });
    expect(init.requestedOutputs).toEqual(["a", "b", "c"]);
    expect([...init.outputs.named]).toEqual([
      ["a", { binary: true, classes: 0 }],
      ["b", { binary: false, classes: 3 }],
      ["c", { binary: false, classes: 0 }],
    ]);
  });
});

describe("the inference header length", () => {
  it.each([
    [undefined, 100, 100],
    ["0", 100, 0],
    ["97xyz", 100, 97],
    ["abc", 100, 0],
    ["", 100, 0],
    [" 5", 100, 5],
    ["1e3", 100, 1],
    ["0x10", 100, 0],
  ])("%j of %d bytes is %d", (header, length, expected) => {
    expect(inferenceHeaderLength(header, length)).toBe(expected);
  });

  it.each(["-1", "101", "9007199254740993", "9".repeat(20)])("cannot be %s of 100", (header) => {
    expect(() => inferenceHeaderLength(header, 100)).toThrow(
      `inference header size should be in range (0, 100), got: ${header}`,
    );
  });
});

describe("a raw request", () => {
  it("gets its shape from its size", () => {
    const raw = (ready: ReadyModel, bytes: number) =>
      decodeRawRequest(ready, new Uint8Array(bytes), LIMIT).inputs.get("IN")?.shape;
    expect(raw(model("m", "INT32"), 12)).toEqual([3]);
    expect(raw(model("m", "INT32", [2, -1], 8), 16)).toEqual([1, 2, 2]);
    expect(raw(model("m", "BYTES", [1], 8), 5)).toEqual([1, 1]);
  });

  it("is rejected when its shape cannot be derived", () => {
    const raw = (ready: ReadyModel) => () => decodeRawRequest(ready, new Uint8Array(5), LIMIT);
    expect(raw(model("m", "INT32"))).toThrow(
      "[request id: <id_unknown>] input byte size mismatch for input 'raw_input' for model 'm'. Expected 4, got 5",
    );
    expect(raw(model("m", "INT32", [-1, -1]))).toThrow("more than one variable-sized dimension");
    expect(raw(model("m", "BYTES", [2]))).toThrow("the model must have input shape [1]");
  });
});

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

describe("read json tensor", () => {
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
});

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
