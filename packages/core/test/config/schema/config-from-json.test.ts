import { TritonError } from "@tritonjs/protocol";
import { describe, expect, it } from "vitest";
import { configFromJson, toConfigJson } from "../../../src/config/config-json.js";
import { emptyConfig } from "../../../src/config/defaults.js";

function refusalOf(json: string): string {
  try {
    configFromJson(json);
  } catch (error) {
    if (TritonError.is(error)) return `${error.code} ${error.message}`;
  }
  return "";
}

describe("the JSON form of a configuration", () => {
  it("accepts names from the proto file or in camelCase, and omitted fields", () => {
    expect(configFromJson('{"max_batch_size": 4, "defaultModelFilename": "a", "name": null}')).toEqual({
      ...emptyConfig(),
      maxBatchSize: 4,
      defaultModelFilename: "a",
    });
  });

  it.each([
    ['{max_batch_size: 4, name: "a"}'],
    ["{'max_batch_size': 4, 'name': 'a'}"],
    ['{"max_batch_size": 4, "name": "a",}'],
    ['\f{"max_batch_size": 4, "name": "\\a"}\v'],
  ])("is parsed as leniently as protobuf does: %j", (json) => {
    expect(configFromJson(json)).toEqual({ ...emptyConfig(), maxBatchSize: 4, name: "a" });
  });

  it("writes the largest uint64 so that it is read again", () => {
    const text = '{"name": "m", "dynamic_batching": {"priority_levels": "18446744073709551615"}}';
    const config = configFromJson(text);
    const exact = toConfigJson(config, (value) => value) as { dynamic_batching: object };
    expect(exact.dynamic_batching).toMatchObject({ priority_levels: 2n ** 64n - 1n });
    const written = toConfigJson(config, String);
    expect(written.dynamic_batching).toMatchObject({ priority_levels: "18446744073709551615" });
    expect(toConfigJson(configFromJson(JSON.stringify(written)), String)).toEqual(written);
  });

  it("accepts trailing commas, line breaks in strings, and escapes", () => {
    const json = `{input: [{name: 'x\n\\u0041\\'"\\n', dims: [1, 2,],},]}`;
    expect(configFromJson(json).input).toMatchObject([{ name: "x\nA'\"\n", dims: [1, 2] }]);
  });

  it("accepts numbers as strings, enumerations in any case or as numbers, and one element for a list", () => {
    const json =
      '{"input": [{"name": "x", "data_type": "type_fp32", "format": 1, "dims": ["-1", 2]}, {"dims": 7}]}';
    const [x, second] = configFromJson(json).input;
    expect(x).toMatchObject({ dataType: "TYPE_FP32", format: "FORMAT_NHWC", dims: [-1, 2] });
    expect(second?.dims).toEqual([7]);
  });

  it.each([
    ['{"nofield": 1}', "nofield: Cannot find field."],
    ['{"input": [{"nofield": 1}]}', "(input[0]) nofield: Cannot find field."],
    ['{"max_batch_size": "x"}', '(max_batch_size): invalid value "x" for type TYPE_INT32'],
    ['{"max_batch_size": 3.5}', "(max_batch_size): invalid value 3.5 for type TYPE_INT32"],
    ['{"max_batch_size": 2147483648}', "(max_batch_size): invalid value 2147483648 for type TYPE_INT32"],
    ['{"input": [{"data_type": "FP32"}]}', '(input[0].data_type): invalid value "FP32" for type TYPE_ENUM'],
    ['{"name": 5}', "(name): invalid value 5 for type TYPE_STRING"],
    ['{"name": ["a"]}', "name: Proto field is not repeating, cannot start list."],
    [
      '{"dynamic_batching": {}, "sequence_batching": {}}',
      ": invalid value oneof field 'scheduling_choice' is already set. Cannot set 'sequence_batching' for type oneof",
    ],
    ["null", ": Root element must be a message."],
    ["[]", ": Root element must be a message."],
    ["not json", "Unexpected token.\nnot json\n^"],
    ["", "Unexpected end of string. Expected a value.\n\n^"],
    ["{name 1}", "Expected : between key:value pair.\n{name 1}\n      ^"],
    ["{name: a}", "Unexpected token.\n{name: a}\n       ^"],
    ["{name: ?}", "Expected a value.\n{name: ?}\n       ^"],
    ["{name: 'a}", "Closing quote expected in string.\n{name: 'a}\n       ^"],
    ["{name: 1 2}", "Expected , or } after key:value pair.\n{name: 1 2}\n         ^"],
    ["{input: [1 2]}", "Expected , or ] after array value.\n{input: [1 2]}\n           ^"],
    ["{,}", "Expected an object key or }.\n{,}\n ^"],
    ["{input: [,]}", "Unexpected token.\n{input: [,]}\n         ^"],
    [
      "{max_batch_size: 010}",
      "Octal/hex numbers are not valid JSON values.\n{max_batch_size: 010}\n                 ^",
    ],
    ["{max_batch_size: 1-2}", "Unable to parse number.\n{max_batch_size: 1-2}\n                 ^"],
    ["{} {", "Parsing terminated before end of input.\n{} {\n   ^"],
    [
      "{name: 'a'",
      "Unexpected end of string. Expected , or } after key:value pair.\n{name: 'a'\n          ^",
    ],
  ])("%s is rejected", (json, text) => {
    expect(refusalOf(json)).toBe(`INVALID_ARG ${text}`);
  });

  it("reports all problems at once", () => {
    expect(refusalOf('{"a": 1, "b": 2, "name": 3}').split("\n")).toHaveLength(3);
  });

  it("rejects unknown fields nested 100,000 deep without crashing", () => {
    expect(refusalOf(`{"a": ${"[".repeat(100_000)}${"]".repeat(100_000)}}`)).toMatch(/^INVALID_ARG /);
  });
});
