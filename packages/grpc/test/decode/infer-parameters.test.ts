import { SharedMemory } from "@tritonjs/core/internal";
import { decodeMessage, encodeMessage, type inference, inference as messages } from "@tritonjs/protocol/grpc";
import { describe, expect, test } from "vitest";
import {
  decodeInferParameters,
  decodeOutputForms,
  type InferParameters,
  requestedOutputNames,
} from "../../src/infer/infer-request.js";

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
    expect(parameters).toEqual({
      i: 7,
      wide: -(2n ** 63n),
      s: "",
      b: false,
      d: 1.5,
      "": 0,
      headers: "x",
    });
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
    ).toEqual({
      "my-a": "header",
      k: 1,
    });
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
