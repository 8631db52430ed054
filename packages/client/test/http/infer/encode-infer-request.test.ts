import { Tensor, TritonError } from "@tritonjs/core";
import ndarray from "ndarray";
import { describe, expect, it } from "vitest";
import { encodeInferRequest, type HttpInferInput, type InferCall } from "../../../src/http/index.js";

function encode(call: InferCall): unknown {
  const { body, jsonLength } = encodeInferRequest(call);
  return JSON.parse(new TextDecoder().decode(body.subarray(0, jsonLength)));
}

function encodeText(call: InferCall): string {
  return new TextDecoder().decode(encodeInferRequest(call).body);
}

function refusal(call: InferCall): TritonError {
  try {
    encodeInferRequest(call);
  } catch (error) {
    expect(TritonError.is(error)).toBe(true);
    return error as TritonError;
  }
  throw new Error("the request was encoded");
}

const inputs = { x: Float32Array.of(1, 2) };

describe("an input", () => {
  it.each<[string, HttpInferInput, string, number[]]>([
    ["a typed array", Float32Array.of(1, 2), "FP32", [2]],
    ["an ndarray", ndarray(Int16Array.of(1, 2), [2, 1]), "INT16", [2, 1]],
    ["a tensor", Tensor.fromElements("FP16", [1], Uint16Array.of(1)), "FP16", [1]],
    ["nested booleans", [[true], [false]], "BOOL", [2, 1]],
    ["nested bigints", [[1n, 2n]], "INT64", [1, 2]],
    ["strings", ["a", "b"], "BYTES", [2]],
    ["a string", "a", "BYTES", []],
    ["byte arrays", [Uint8Array.of(1)], "BYTES", [1]],
    ["clamped bytes", new Uint8ClampedArray(2) as unknown as Uint8Array, "UINT8", [2]],
    ["a view of a Buffer", Buffer.from("ab"), "UINT8", [2]],
    ["numbers with a data type", { datatype: "UINT8", data: [[1], [2]] }, "UINT8", [2, 1]],
    ["flat numbers with a shape", { datatype: "UINT8", shape: [2, 1], data: [1, 2] }, "UINT8", [2, 1]],
    ["a typed array with an open shape", { shape: [-1, 1], data: Int8Array.of(1, 2) }, "INT8", [2, 1]],
    ["a scalar", { datatype: "INT32", data: 5 }, "INT32", []],
    ["bytes meant as booleans", { datatype: "BOOL", data: Uint8Array.of(1) }, "BOOL", [1]],
  ])("can be %s", (_form, input, datatype, shape) => {
    expect(encode({ inputs: { x: input } })).toMatchObject({ inputs: [{ name: "x", datatype, shape }] });
  });

  it.each<[string, HttpInferInput, string]>([
    ["numbers without a data type", [1, 2], "input 'x' has no datatype"],
    ["nothing in no type", [], "input 'x' has no datatype"],
    ["a wrong typed array", { datatype: "FP32", data: Int32Array.of(1) }, "expected Float32Array"],
    ["a wrong scalar", { datatype: "UINT8", data: [256] }, "expected an integer in [0, 255], got 256"],
    ["ragged arrays", { datatype: "UINT8", data: [[1, 2], [3]] }, "expected nested arrays of shape [2,2]"],
    ["too few elements", { datatype: "UINT8", shape: [3], data: [1, 2] }, "for shape [3], got"],
    ["too few in an array", { shape: [3], data: Uint8Array.of(1) }, "for shape [3], got"],
    ["an unknown data type", { datatype: "FP8" as "FP16", data: [1] }, "unknown data type 'FP8'"],
  ])("cannot be %s", (_form, input, message) => {
    const error = refusal({ inputs: { x: input } });
    expect(error.code).toBe("INVALID_ARG");
    expect(error.message).toContain(message);
  });

  it("can be in shared memory", () => {
    const sharedMemory = { region: "r", byteSize: 8, offset: 4 };
    expect(encode({ inputs: { x: { datatype: "FP32", shape: [2], sharedMemory } } })).toMatchObject({
      inputs: [
        {
          name: "x",
          parameters: { shared_memory_region: "r", shared_memory_byte_size: 8, shared_memory_offset: 4 },
        },
      ],
    });
  });

  it("is left out when it is undefined, and may have any name", () => {
    const odd = Object.fromEntries([["__proto__", Int8Array.of(1)]]);
    expect(encode({ inputs: { ...odd, x: undefined as unknown as HttpInferInput } })).toMatchObject({
      inputs: [{ name: "__proto__" }],
    });
  });
});

describe("binary tensors", () => {
  it("follow the JSON in the order of the inputs", () => {
    const { body, jsonLength } = encodeInferRequest({
      inputs: { b: Uint8Array.of(1, 2), a: { data: Uint8Array.of(9), binary: false }, c: ["é"] },
    });
    expect([...body.subarray(jsonLength)]).toEqual([1, 2, 2, 0, 0, 0, 0xc3, 0xa9]);
    expect(JSON.parse(new TextDecoder().decode(body.subarray(0, jsonLength))).inputs).toEqual([
      { name: "b", datatype: "UINT8", shape: [2], parameters: { binary_data_size: 2 } },
      { name: "a", datatype: "UINT8", shape: [1], data: [9] },
      { name: "c", datatype: "BYTES", shape: [1], parameters: { binary_data_size: 6 } },
    ]);
  });
});

describe("JSON tensors", () => {
  const data = (input: HttpInferInput) =>
    /"data":(\[.*?\])/.exec(encodeText({ inputs: { x: input }, binary: false }))?.[1];

  it("are written exactly", () => {
    expect(data(BigInt64Array.of(2n ** 63n - 1n))).toBe("[9223372036854775807]");
    expect(data(Float64Array.of(Number.NaN, Number.NEGATIVE_INFINITY, -0, 0.1))).toBe(
      "[NaN,-Infinity,-0.0,0.1]",
    );
    expect(data([true, false])).toBe("[true,false]");
    expect(data(['"\ud800'])).toBe('["\\"\ufffd"]');
  });

  it("cannot hold half floats or bytes that are not UTF-8", () => {
    const halves = { inputs: { x: { datatype: "FP16" as const, data: [1] } }, binary: false };
    expect(refusal(halves).message).toBe("input 'x': cannot send FP16 as JSON; send it as binary");
    expect(refusal({ inputs: { x: [Uint8Array.of(0xff)] }, binary: false }).message).toContain("not UTF-8");
  });

  it("request JSON outputs and need no header", () => {
    expect(encodeInferRequest({ inputs, binary: false }).jsonLength).toBeUndefined();
    expect(encode({ inputs, binary: false })).not.toHaveProperty("parameters");
  });
});

describe("requested outputs", () => {
  it("are all binary when none is named", () => {
    expect(encode({ inputs })).toMatchObject({ parameters: { binary_data_output: true } });
    expect(encode({ inputs })).not.toHaveProperty("outputs");
  });

  it("each choose their own form", () => {
    const sharedMemory = { region: "r", byteSize: 8 };
    const outputs = [
      "a",
      { name: "b", binary: false },
      { name: "c", classes: 3 },
      { name: "d", sharedMemory },
    ];
    expect(encode({ inputs, outputs })).toMatchObject({
      outputs: [
        { name: "a", parameters: { binary_data: true } },
        { name: "b", parameters: { binary_data: false } },
        { name: "c", parameters: { binary_data: true, classification: 3 } },
        { name: "d", parameters: { shared_memory_region: "r", shared_memory_byte_size: 8 } },
      ],
    });
    expect(encode({ inputs, outputs })).not.toHaveProperty("parameters");
  });
});

describe("request parameters", () => {
  it("include those that the protocol defines", () => {
    const call = {
      inputs,
      binary: false,
      id: "i",
      priority: 2,
      queueTimeoutMicroseconds: 5,
      sequence: { id: 2n ** 64n - 1n, start: true },
      parameters: { a: 1, b: 0.5, c: "x", d: true, e: 2n ** 60n },
    };
    expect(encodeText(call)).toMatch(
      /^\{"id":"i","parameters":\{"a":1,"b":0.5,"c":"x","d":true,"e":1152921504606846976,"sequence_id":18446744073709551615,"sequence_start":true,"sequence_end":false,"priority":2,"timeout":5\},"inputs"/,
    );
  });

  it.each(["sequence_id", "priority", "timeout", "headers", "binary_data_output", "triton_x"])(
    "cannot be named %s",
    (name) => {
      expect(refusal({ inputs, parameters: { [name]: 1 } }).message).toBe(
        `Parameter "${name}" is a reserved parameter and cannot be specified.`,
      );
    },
  );
});
