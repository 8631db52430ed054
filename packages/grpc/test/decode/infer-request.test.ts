import { status } from "@grpc/grpc-js";
import { shapeToString } from "@tritonjs/protocol";
import { decodeMessage, encodeMessage, inference, inference as messages } from "@tritonjs/protocol/grpc";
import { SharedMemory } from "@tritonjs/server/internal";
import { describe, expect, test } from "vitest";
import {
  decodeInferParameters,
  decodeInputs,
  decodeOutputForms,
  type InferParameters,
  requestedOutputNames,
} from "../../src/infer/infer-request.js";
import { encodeInferResponseParts, responseHead } from "../../src/infer/infer-response.js";
import { FakeService } from "../support/fake-service.js";
import { serve } from "../support/serve.js";

const noRegions = new SharedMemory(false);

type Contents = inference.InferTensorContents.$Properties;

function decode(datatype: string, contents: Contents | undefined, raw: Uint8Array[] = [], shape = [2]) {
  const message = encodeMessage(inference.ModelInferRequest, {
    modelName: "m",
    inputs: [{ name: "X", datatype, shape, contents }],
    rawInputContents: raw,
  });
  const decoded = decodeMessage(inference.ModelInferRequest, message);
  return decodeInputs(decoded, noRegions).get("X")!;
}

describe("typed contents", () => {
  test.each<[string, Contents, unknown]>([
    ["BOOL", { boolContents: [true, false] }, Uint8Array.of(1, 0)],
    ["INT8", { intContents: [-1, 300] }, Int8Array.of(-1, 44)],
    ["INT16", { intContents: [-1, 70_000] }, Int16Array.of(-1, 4464)],
    ["INT32", { intContents: [-5, 2 ** 31 - 1] }, Int32Array.of(-5, 2 ** 31 - 1)],
    [
      "INT64",
      { int64Contents: [-(2n ** 63n), 2n ** 63n - 1n] },
      BigInt64Array.of(-(2n ** 63n), 2n ** 63n - 1n),
    ],
    ["INT64", { int64Contents: [-1, 2 ** 53 - 1] }, BigInt64Array.of(-1n, 2n ** 53n - 1n)],
    ["UINT8", { uintContents: [255, 256] }, Uint8Array.of(255, 0)],
    ["UINT16", { uintContents: [65_535, 65_537] }, Uint16Array.of(65_535, 1)],
    ["UINT32", { uintContents: [0, 2 ** 32 - 1] }, Uint32Array.of(0, 2 ** 32 - 1)],
    [
      "UINT64",
      { uint64Contents: [2n ** 64n - 1n, 2n ** 53n + 1n] },
      BigUint64Array.of(2n ** 64n - 1n, 2n ** 53n + 1n),
    ],
    ["FP32", { fp32Contents: [1.5, Number.NaN] }, Float32Array.of(1.5, Number.NaN)],
    [
      "FP64",
      { fp64Contents: [0.1, Number.NEGATIVE_INFINITY] },
      Float64Array.of(0.1, Number.NEGATIVE_INFINITY),
    ],
    [
      "BYTES",
      { bytesContents: [Buffer.from("a"), new Uint8Array(0)] },
      [Uint8Array.of(97), new Uint8Array(0)],
    ],
  ])("are exact for %s, and are truncated to the size of an element", (datatype, contents, elements) => {
    expect(decode(datatype, contents).elements).toEqual(elements);
  });

  test.each<[string, Contents, string]>([
    ["INT32", { boolContents: [true] }, "of type 'BOOL', expected datatype 'INT32'"],
    ["INT32", { int64Contents: [1] }, "of type 'INT64', expected datatype 'INT32'"],
    ["INT64", { intContents: [1] }, "of type 'INT32', expected datatype 'INT64'"],
    ["INT8", { uintContents: [1] }, "of type 'UINT32', expected datatype 'INT8'"],
    ["FP16", { fp32Contents: [1] }, "of type 'FP32', expected datatype 'FP16'"],
    ["FP32", { fp64Contents: [1] }, "of type 'FP64', expected datatype 'FP32'"],
    ["UINT32", { uint64Contents: [1] }, "of type 'UINT64', expected datatype 'UINT32'"],
    ["FP32", { bytesContents: [Buffer.from("a")] }, "of type 'BYTES', expected datatype 'FP32'"],
    ["int32", { intContents: [1] }, "of type 'INT32', expected datatype '<invalid>'"],
  ])("are rejected for %s in the field of another data type", (datatype, contents, text) => {
    expect(() => decode(datatype, contents)).toThrow(
      `unexpected explicit tensor data for input tensor 'X' for model 'm' ${text}`,
    );
  });

  test("are rejected in two fields", () => {
    expect(() => decode("BYTES", { bytesContents: [Buffer.from("a")], intContents: [1] })).toThrow(
      "of type 'INT32', expected datatype 'BYTES'",
    );
    expect(() => decode("INT32", { intContents: [1], fp32Contents: [1] })).toThrow(
      "unexpected explicit tensor data for input tensor 'X' for model 'm', binary data was already supplied.",
    );
  });

  test("form a tensor without bytes when they have no value", () => {
    expect(decode("INT32", {}).byteLength).toBe(0);
    expect(decode("BYTES", {}).byteLength).toBe(0);
  });

  test("are rejected beside raw contents, even when they are empty", () => {
    expect(() => decode("INT32", {}, [new Uint8Array(8)])).toThrow(
      "contents field must not be specified when using raw_input_contents for 'X' for model 'm'",
    );
  });
});

describe("inputs", () => {
  test("are rejected without data", () => {
    expect(() => decode("INT32", undefined)).toThrow(
      "unable to find data for input tensor 'X' for model 'm' in request.",
    );
  });

  test("keep all digits of a dimension for validation", () => {
    const message = decodeMessage(
      inference.ModelInferRequest,
      encodeMessage(inference.ModelInferRequest, {
        modelName: "m",
        inputs: [{ name: "X", datatype: "INT32", shape: [2n ** 63n - 1n] }],
        rawInputContents: [new Uint8Array(0)],
      }),
    );
    const { shape } = decodeInputs(message, noRegions).get("X")!;
    expect(shapeToString(shape)).toBe("[9223372036854775807]");
  });

  test("keep negative dimensions for validation", () => {
    expect(decode("INT32", undefined, [new Uint8Array(8)], [-1, -2]).shape).toEqual([-1, -2]);
  });

  test("are rejected when two have one name", async () => {
    const { client } = await serve(new FakeService());
    const input = { name: "X", datatype: "INT32", shape: [1] };
    const rawInputContents = [new Uint8Array(4), new Uint8Array(4)];
    await expect(
      client.infer({ modelName: "m", id: "r", inputs: [input, input], rawInputContents }),
    ).rejects.toMatchObject({
      code: status.INVALID_ARGUMENT,
      details: "[request id: r] input 'X' already exists in request",
    });
    await expect(client.infer({ modelName: "m", inputs: [input, input], rawInputContents })).rejects.toThrow(
      "[request id: <id_unknown>] input 'X' already exists in request",
    );
  });
});

describe("shared-memory parameters", () => {
  const parameters = (values: Record<string, inference.InferParameter.$Properties>) => () => {
    const message = encodeMessage(inference.ModelInferRequest, {
      modelName: "m",
      inputs: [{ name: "X", datatype: "INT32", shape: [1], parameters: values }],
      rawInputContents: [new Uint8Array(4)],
    });
    return decodeInputs(decodeMessage(inference.ModelInferRequest, message), noRegions);
  };
  const region = { stringParam: "r" };
  const size = { int64Param: 4 };

  test.each<[string, Record<string, inference.InferParameter.$Properties>, string]>([
    [
      "a region of a wrong type",
      { shared_memory_region: size, shared_memory_byte_size: size },
      "invalid value type for 'shared_memory_region' parameter for tensor 'X', expected string_param.",
    ],
    [
      "a size of a wrong type",
      { shared_memory_region: region, shared_memory_byte_size: { uint64Param: 4 } },
      "invalid value type for 'shared_memory_byte_size' parameter for tensor 'X', expected int64_param.",
    ],
    [
      "an offset of a wrong type",
      { shared_memory_region: region, shared_memory_byte_size: size, shared_memory_offset: region },
      "invalid value type for 'shared_memory_offset' parameter for tensor 'X', expected int64_param.",
    ],
    [
      "no size",
      { shared_memory_region: region },
      "'shared_memory_byte_size' must be specified along with 'shared_memory_region' parameter for tensor 'X'",
    ],
    [
      "a size without a region",
      { shared_memory_byte_size: size },
      "'shared_memory_byte_size' can not be specified without 'shared_memory_region' parameter for tensor 'X'",
    ],
    [
      "an offset without a region",
      { shared_memory_offset: size },
      "'shared_memory_offset' can not be specified without 'shared_memory_region' parameter for tensor 'X'",
    ],
    [
      "an unregistered region",
      { shared_memory_region: region, shared_memory_byte_size: size },
      "Unable to find shared memory region: 'r'",
    ],
  ])("are rejected with %s", (_, values, text) => {
    expect(parameters(values)).toThrow(text);
  });
});

describe("infer parameters", () => {
  type Parameter = inference.InferParameter.$Properties;

  function decode(parameters: Record<string, Parameter>, forwarded = {}) {
    const bytes = encodeMessage(messages.ModelInferRequest, { parameters });
    const decoded: InferParameters = { enableEmptyFinalResponse: false, parameters: {} };
    decodeInferParameters(decodeMessage(messages.ModelInferRequest, bytes).parameters, forwarded, decoded);
    return decoded;
  }

  function outputs(parameters: Record<string, Parameter>) {
    const bytes = encodeMessage(messages.ModelInferRequest, { outputs: [{ name: "Y", parameters }] });
    return decodeMessage(messages.ModelInferRequest, bytes).outputs;
  }

  function forms(requested: ReturnType<typeof outputs>) {
    return decodeOutputForms(requested, new SharedMemory(false));
  }

  describe("request parameters", () => {
    test("reach the model in every type, wide integers exactly", () => {
      const { parameters } = decode({
        i: { int64Param: 7 },
        wide: { int64Param: -(2n ** 63n) },
        s: { stringParam: "" },
        b: { boolParam: false },
        d: { doubleParam: 1.5 },
        "": { int64Param: 0 },
        headers: { stringParam: "x" },
      });
      expect(parameters).toEqual({ i: 7, wide: -(2n ** 63n), s: "", b: false, d: 1.5, "": 0, headers: "x" });
    });

    test("may have names of object properties", () => {
      const { parameters } = decode({ constructor: { int64Param: 1 }, toString: { stringParam: "t" } });
      expect(Object.entries(parameters)).toEqual([
        ["constructor", 1],
        ["toString", "t"],
      ]);
    });

    test("do not reach the model when the protocol gives them a meaning", () => {
      expect(
        decode({
          sequence_id: { int64Param: -1 },
          sequence_start: { boolParam: true },
          sequence_end: { boolParam: false },
          priority: { uint64Param: 3 },
          timeout: { int64Param: 5 },
          triton_enable_empty_final_response: { boolParam: true },
        }),
      ).toEqual({
        correlationId: 2n ** 64n - 1n,
        sequenceStart: true,
        sequenceEnd: false,
        priority: 3,
        queueTimeoutMicroseconds: 5,
        enableEmptyFinalResponse: true,
        parameters: {},
      });
      expect(decode({ sequence_id: { stringParam: "é" } }).correlationId).toBe("é");
      expect(decode({ sequence_id: { stringParam: "y".repeat(128) } }).correlationId).toHaveLength(128);
      expect(decode({ timeout: { int64Param: -1 } }).queueTimeoutMicroseconds).toBe(2 ** 64);
    });

    const reserved =
      "parameter keys starting with 'triton_' are reserved for Triton usage. Only the following keys starting with " +
      "'triton_' are allowed: triton_enable_empty_final_response";

    test.each<[string, Parameter, string]>([
      [
        "k",
        { uint64Param: 5 },
        "invalid value type for 'k' parameter, expected int64_param, bool_param, or string_param.",
      ],
      ["k", {}, "invalid value type for 'k' parameter, expected int64_param, bool_param, or string_param."],
      [
        "sequence_id",
        { uint64Param: 7 },
        "invalid value type for 'sequence_id' parameter, expected int64_param or string_param.",
      ],
      [
        "sequence_id",
        { stringParam: "y".repeat(129) },
        "string correlation ID cannot be longer than 128 characters",
      ],
      [
        "sequence_start",
        { int64Param: 1 },
        "invalid value type for 'sequence_start' parameter, expected bool_param.",
      ],
      [
        "sequence_end",
        { stringParam: "true" },
        "invalid value type for 'sequence_end' parameter, expected bool_param.",
      ],
      ["priority", { int64Param: -1 }, "invalid value for 'priority', expected value >= 0."],
      [
        "priority",
        { boolParam: true },
        "invalid value type for 'priority' parameter, expected int64_param or uint64_param.",
      ],
      ["timeout", { uint64Param: 5 }, "invalid value type for 'timeout' parameter, expected int64_param."],
      [
        "triton_enable_empty_final_response",
        { stringParam: "yes" },
        "invalid value type for 'triton_enable_empty_final_response' parameter, expected bool_param.",
      ],
      ["triton_final_response", { boolParam: true }, reserved],
      ["triton_foo", { int64Param: 1 }, reserved],
    ])("reject %s of a wrong type", (key, parameter, text) => {
      expect(() => decode({ [key]: parameter })).toThrow(text);
    });

    test("are overridden by headers of the same name", () => {
      const forwarded = { "my-a": "header" };
      expect(
        decode({ "my-a": { stringParam: "request" }, k: { int64Param: 1 } }, forwarded).parameters,
      ).toEqual({ "my-a": "header", k: 1 });
      expect(decode({}, forwarded).parameters).toEqual(forwarded);
    });
  });

  describe("requested outputs", () => {
    test("are listed once each", () => {
      expect(requestedOutputNames([{ name: "B" }, { name: "A" }, { name: "B" }])).toEqual(["B", "A"]);
    });

    test("may request classes", () => {
      expect(forms(outputs({ classification: { int64Param: 2 } }))).toEqual(new Map([["Y", { classes: 2 }]]));
      expect(forms(outputs({ binary_data: { boolParam: true } }))).toEqual(new Map());
    });

    test.each<[Parameter, string]>([
      [{ int64Param: 0 }, "invalid value for 'classification' parameter, expected >= 0"],
      [{ int64Param: -1 }, "invalid value for 'classification' parameter, expected >= 0"],
      [{ stringParam: "2" }, "invalid value type for 'classification' parameter, expected int64_param"],
      [{ uint64Param: 2 }, "invalid value type for 'classification' parameter, expected int64_param"],
    ])("reject a classification of %o", (parameter, text) => {
      expect(() => forms(outputs({ classification: parameter }))).toThrow(text);
    });

    test("reject classes together with shared memory", () => {
      const parameters = {
        classification: { int64Param: 2 },
        shared_memory_region: { stringParam: "r" },
        shared_memory_byte_size: { int64Param: 4 },
      };
      expect(() => forms(outputs(parameters))).toThrow(
        "output can't set both 'shared_memory_region' and 'classification'",
      );
    });
  });
});

const response = (shape: number[], modelVersion = "1") => ({
  modelName: "head-test",
  modelVersion,
  outputs: [{ name: "y", datatype: "FP32", shape }],
});

const bytesOf = (message: object) => Buffer.concat(encodeInferResponseParts(message)).toString("hex");

describe("response head", () => {
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
});
