import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { type ModelSequenceBatching, type SequenceControl, TritonError } from "@tritonjs/protocol";
import {
  emptyConfig,
  type FieldType,
  isEnum,
  isMessage,
  type MessageSchema,
  modelConfigSchema,
  toConfigJson,
} from "@tritonjs/protocol/config";
import protobuf from "protobufjs";
import { describe, expect, it } from "vitest";
import { validateConfig, validateOptions } from "../../core/src/config/resolve-config.js";
import type { SequenceOptions } from "../../core/src/config/sequence-options.js";
import { modelConfig } from "../../core/test/support/model-config.js";
import { configFromJson } from "../src/config/config-from-json.js";
import {
  FIELD_SUPPORT,
  fieldNotes,
  fieldPaths,
  fieldProblems,
  supportOf,
} from "../src/config/field-support.js";
import { MAX_PROTOTXT_BYTES, parsePrototxt, readPrototxt } from "../src/config/prototxt.js";

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

const document = readFileSync(new URL("../../../docs/model-configuration.md", import.meta.url), "utf8");

describe("the table of supported fields", () => {
  it("lists every field of the message and no other", () => {
    const paths = fieldPaths();
    expect(paths.filter((path) => supportOf(path) === undefined)).toEqual([]);
    expect(Object.keys(FIELD_SUPPORT).filter((path) => !paths.includes(path))).toEqual([]);
  });

  it("marks each field as honoured, without effect, or refused with a remedy", () => {
    for (const [path, { honoured, noEffect, refused, refusedWhen }] of Object.entries(FIELD_SUPPORT)) {
      expect((honoured === undefined) !== (noEffect === undefined && refused === undefined), path).toBe(true);
      expect(refused === undefined, path).toBe(refusedWhen === undefined);
    }
  });

  it("equals the table in the documentation", () => {
    const rows = Object.entries(FIELD_SUPPORT).map(([path, support]) => {
      const refused = support.refusedWhen === undefined ? "" : `refused ${support.refusedWhen}`;
      const effect =
        support.honoured ?? (support.noEffect === undefined ? "" : `no effect: ${support.noEffect}`);
      return `| \`${path}\` | ${[effect, refused].filter((text) => text !== "").join("; ")} |`;
    });
    const documented = document.split("\n").filter((line) => /^\| `[a-z_.]+` \|/.test(line));
    expect(documented.filter((line) => rows.includes(line))).toEqual(rows);
  });
});

describe("support of a configuration field", () => {
  const problemsOf = (text: string) => fieldProblems(readPrototxt(`name: "m" ${text}`));
  const notesOf = (text: string) => fieldNotes(readPrototxt(`name: "m" ${text}`));

  it("says nothing about an unset field", () => {
    expect([...fieldProblems(emptyConfig()), ...fieldNotes(emptyConfig())]).toEqual([]);
  });

  it("refuses a field that cannot be honoured, with a remedy", () => {
    expect(problemsOf("output { is_non_linear_format_io: true }")).toEqual([
      "model 'm': 'output.is_non_linear_format_io' is a format of TensorRT: remove it, and give the model linear tensors",
    ]);
    expect(problemsOf("instance_group { profile: '0' }")[0]).toContain("'instance_group.profile'");
  });

  it("may refuse a field for one backend and ignore it for another", () => {
    const operations = "model_operations { op_library_filename: 'a.so' }";
    expect(problemsOf(`backend: 'onnxruntime' ${operations}`)[0]).toContain("onnxruntime-node cannot load");
    expect(notesOf(`backend: 'onnxruntime' ${operations}`)).toEqual([]);
    expect(problemsOf(`backend: 'identity' ${operations}`)).toEqual([]);
    expect(notesOf(`backend: 'identity' ${operations}`)[0]).toContain("'model_operations' has no effect: ");
  });

  it("warns of a field without effect, with the reason", () => {
    expect(notesOf("optimization { cuda { busy_wait_events: true } eager_batching: true }")).toEqual([
      expect.stringMatching(/^model 'm': 'optimization\.cuda\.busy_wait_events' has no effect: /),
      expect.stringMatching(/^model 'm': 'optimization\.eager_batching' has no effect: /),
    ]);
  });
});

const proto = fileURLToPath(new URL("../../protocol/proto/model_config.proto", import.meta.url));

const root = new protobuf.Root().loadSync(proto, { keepCase: true });

function messagesIn(schema: MessageSchema, found = new Map<string, MessageSchema>()) {
  found.set(schema.name, schema);
  for (const { type } of schema.fields) if (isMessage(type)) messagesIn(type, found);
  return found;
}

const typeName = (type: FieldType) => (typeof type === "string" ? type : `inference.${type.name}`);

describe("the table of configuration fields", () => {
  it.each([...messagesIn(modelConfigSchema).values()])(
    "has $name as the proto file defines it",
    ({ name, fields }) => {
      const defined = root.lookupType(`inference.${name}`);
      expect(
        fields.map((field) => [field.name, typeName(field.type), field.shape, field.mapKey, field.oneof]),
      ).toEqual(
        defined.fieldsArray.map((field) => {
          field.resolve();
          const shape = field.map ? "map" : field.repeated ? "repeated" : "one";
          const type = field.resolvedType?.fullName.slice(1) ?? field.type;
          return [
            field.name,
            type,
            shape,
            (field as { readonly keyType?: string }).keyType,
            field.partOf?.name,
          ];
        }),
      );
    },
  );

  it("has the values of each enumeration", () => {
    for (const { fields } of messagesIn(modelConfigSchema).values()) {
      for (const { type } of fields) {
        if (isEnum(type)) expect(type.values).toEqual(root.lookupEnum(`inference.${type.name}`).values);
      }
    }
  });
});

const resolved = (sequence: SequenceOptions) => modelConfig({ options: { sequence } });

const problems = (given: Partial<ModelSequenceBatching>) => {
  const sequenceBatching = { ...resolved({}).sequenceBatching!, ...given };
  return validateConfig(modelConfig({ overrides: { sequenceBatching } }));
};

const control = (given: Partial<SequenceControl>): SequenceControl => ({
  kind: "CONTROL_SEQUENCE_START",
  int32FalseTrue: [],
  fp32FalseTrue: [],
  boolFalseTrue: [],
  dataType: "TYPE_INVALID",
  ...given,
});

const withControl = (given: Partial<SequenceControl>, name = "C") =>
  problems({ controlInput: [{ name, control: [control(given)] }] });

describe("sequence options", () => {
  it("replace the dynamic batcher, with Triton's defaults", () => {
    const config = resolved({});
    expect(config.dynamicBatching).toBeUndefined();
    expect(config.sequenceBatching).toEqual({
      oldest: {
        maxCandidateSequences: 0,
        preferredBatchSize: [4],
        maxQueueDelayMicroseconds: 0,
        preserveOrdering: false,
      },
      maxSequenceIdleMicroseconds: 1_000_000,
      controlInput: [],
      state: [],
      iterativeSequence: false,
    });
    expect(validateConfig(config)).toEqual([]);
  });

  it("create control tensors", () => {
    const { sequenceBatching } = resolved({
      controls: {
        start: "S",
        ready: { name: "R", dtype: "BOOL" },
        correlationId: { name: "C", dtype: "BYTES" },
      },
    });
    expect(sequenceBatching!.controlInput).toEqual([
      { name: "S", control: [control({ int32FalseTrue: [0, 1] })] },
      { name: "R", control: [control({ kind: "CONTROL_SEQUENCE_READY", boolFalseTrue: [false, true] })] },
      { name: "C", control: [control({ kind: "CONTROL_SEQUENCE_CORRID", dataType: "TYPE_STRING" })] },
    ]);
  });

  it("report misspelt names", () => {
    const sequence = { strategie: "direct", controls: { strat: "S" } } as SequenceOptions;
    expect(validateOptions({ sequence })).toEqual([
      "config.sequence has an unknown option 'strategie': did you mean 'strategy'?",
      "config.sequence.controls has an unknown option 'strat': did you mean 'start'?",
    ]);
  });

  it("are printed in the order of Triton's message", () => {
    const json = toConfigJson(resolved({ strategy: "direct", controls: { start: "S" } })).sequence_batching;
    expect(JSON.stringify(json)).toBe(
      '{"direct":{"max_queue_delay_microseconds":0,"minimum_slot_utilization":0},' +
        '"max_sequence_idle_microseconds":1000000,"control_input":[{"name":"S","control":[{"kind":' +
        '"CONTROL_SEQUENCE_START","int32_false_true":[0,1],"fp32_false_true":[],"bool_false_true":[],' +
        '"data_type":"TYPE_INVALID"}]}],"state":[],"iterative_sequence":false}',
    );
  });
});

describe("sequence batching is rejected", () => {
  it("when a control tensor has no name", () => {
    expect(withControl({ int32FalseTrue: [0, 1] }, "")).toEqual([
      "sequence batching control tensor must have a name for m",
    ]);
  });

  it("when a control has no values, too many kinds of them, or not two", () => {
    const kind = "CONTROL_SEQUENCE_START for m";
    expect(withControl({})).toEqual([
      `sequence batching must specify either 'int32_false_true', 'fp32_false_true' or 'bool_false_true' for ${kind}`,
    ]);
    expect(withControl({ int32FalseTrue: [0, 1], fp32FalseTrue: [0, 1] })).toEqual([
      "sequence batching specifies more than one from 'int32_false_true', 'fp32_false_true' and " +
        `'bool_false_true' for ${kind}`,
    ]);
    expect(withControl({ fp32FalseTrue: [0] })).toEqual([
      `sequence batching control 'fp32_false_true' must have exactly 2 entries for ${kind}`,
    ]);
  });

  it("when a control is there twice", () => {
    const start = control({ int32FalseTrue: [0, 1] });
    const twice = ["A", "B"].map((name) => ({ name, control: [start] }));
    expect(problems({ controlInput: twice })).toEqual([
      "sequence batching specifies multiple CONTROL_SEQUENCE_START tensors for m",
    ]);
  });

  it("when the correlation id has values, or no integer or text type", () => {
    const kind = "CONTROL_SEQUENCE_CORRID";
    expect(withControl({ kind, int32FalseTrue: [0, 1], dataType: "TYPE_FP32" })).toEqual([
      "sequence batching must not specify either 'int32_false_true', 'fp32_false_true' or 'bool_false_true' for " +
        "CONTROL_SEQUENCE_CORRID for m",
      "unexpected data type for control CONTROL_SEQUENCE_CORRID for m. Allowed data types are TYPE_UINT64, " +
        "TYPE_INT64, TYPE_UINT32, TYPE_INT32 and TYPE_STRING",
    ]);
  });

  it("when preferred sizes are impossible", () => {
    const oldest = { ...resolved({}).sequenceBatching!.oldest!, preferredBatchSize: [0, 5] };
    expect(problems({ oldest })).toEqual([
      "sequence batching preferred batch size must be positive for m",
      "sequence batching preferred batch size must be <= max batch size for m",
    ]);
  });
});

const errorsOf = (text: string) =>
  parsePrototxt(text).errors.map(({ line, column, text: words }) => `${line}:${column}: ${words}`);

function messageOf(text: string, source?: string): string {
  try {
    readPrototxt(text, source);
  } catch (error) {
    if (TritonError.is(error)) return `${error.code} ${error.message}`;
  }
  return "";
}

describe("the prototxt reader", () => {
  it("accepts lists in brackets, as repeated fields, and mixed", () => {
    const text = "input { dims: [1, 2] dims: 3 dims: [] dims: [4] }";
    expect(readPrototxt(text).input[0]?.dims).toEqual([1, 2, 3, 4]);
  });

  it("accepts messages with and without a colon, in braces and in angle brackets", () => {
    const text = "input { name: 'a' } input: < name: 'b' > input [ { name: 'c' }, < name: 'd' > ]";
    expect(readPrototxt(text).input.map(({ name }) => name)).toEqual(["a", "b", "c", "d"]);
  });

  it("accepts one comma or semicolon after a field", () => {
    const { input, maxBatchSize } = readPrototxt(
      "max_batch_size: 4; input { name: 'a', dims: 1; }, input { };",
    );
    expect([maxBatchSize, input.length]).toEqual([4, 2]);
    expect(errorsOf("max_batch_size: 4;;")).toEqual(["1:19: Expected identifier, got: ;"]);
  });

  it("joins adjacent strings in either quote, across comments", () => {
    expect(readPrototxt(`name: "a" 'b' # more\n "c"`).name).toBe("abc");
  });

  it("unescapes strings to bytes and decodes these as UTF-8", () => {
    expect(readPrototxt(String.raw`name: "\x41\102\303\251\u00e9\U0001F600\uD83D\uDE00\n\?"`).name).toBe(
      "ABéé😀😀\n?",
    );
  });

  it("accepts decimal, hexadecimal and octal integers in the range of their field", () => {
    expect(readPrototxt("max_batch_size: -0x10").maxBatchSize).toBe(-16);
    expect(readPrototxt("max_batch_size: - 017").maxBatchSize).toBe(-15);
    expect(errorsOf("max_batch_size: 2147483648")).toEqual(["1:17: Integer out of range (2147483648)"]);
    expect(errorsOf(`max_batch_size: ${"9".repeat(100_000)}`)[0]).toMatch(
      /^1:17: Integer out of range \(9{200}\.\.\.\)$/,
    );
    expect(errorsOf("max_batch_size: 09")).toEqual([
      "1:18: Numbers starting with leading zero must be in octal.",
      "1:17: Integer out of range (09)",
    ]);
  });

  it("accepts enumerations by name and by number, including numbers without a name", () => {
    const kinds = readPrototxt(
      "instance_group [{ kind: KIND_GPU }, { kind: 2 }, { kind: 42 }]",
    ).instanceGroup;
    expect(kinds.map(({ kind }) => kind)).toEqual(["KIND_GPU", "KIND_CPU", "42"]);
  });

  it("reads maps as entries, of which the last one counts", () => {
    const text = `metric_tags { key: "a" value: "1" } metric_tags { value: "2" key: "a" } metric_tags { key: "__proto__" }`;
    const { metricTags } = readPrototxt(text);
    expect(Object.entries(metricTags)).toEqual([
      ["a", "2"],
      ["__proto__", ""],
    ]);
  });

  it("counts columns in bytes, with a tab stop every eight columns", () => {
    expect(errorsOf("\tfoo: 1")).toEqual([
      '1:12: Message type "inference.ModelConfig" has no field named "foo".',
    ]);
    expect(errorsOf("# é\nname: 'é' foo: 1")[0]).toMatch(/^2:15: /);
  });

  it("skips a byte order mark", () => {
    expect(readPrototxt('\uFEFFname: "m"').name).toBe("m");
  });
});

describe("a prototxt error", () => {
  it("names the source, the position, and the field", () => {
    expect(messageOf("input [ { name: 'a' }, { dims: [ 4, x ] } ]", "/models/m/config.pbtxt")).toBe(
      "INVALID_ARG failed to read text proto from /models/m/config.pbtxt: Error parsing text-format " +
        "inference.ModelConfig: 1:37: Expected integer, got: x (at input[1].dims[1])",
    );
  });

  it("follows the errors of the tokens before it", () => {
    expect(messageOf("max_batch_size: 1_000").split("\n")).toHaveLength(2);
  });

  it("is one of a limited number", () => {
    expect(errorsOf(`name: "${"\\q".repeat(1000)}"`).length).toBeLessThan(30);
    expect(errorsOf("\x01 ".repeat(1000)).length).toBeLessThan(30);
  });
});

describe("an oversized prototxt", () => {
  it("is rejected before parsing when it is too long", () => {
    expect(errorsOf("#".repeat(MAX_PROTOTXT_BYTES + 1))).toEqual([
      `1:1: cannot parse the text: expected at most ${MAX_PROTOTXT_BYTES} bytes, got more`,
    ]);
  });

  it.each(["{", "[", "<", "input {", "input [ {", "optimization { cuda { graph_spec {"])(
    "is rejected without a crash when it nests %s 100,000 deep",
    (open) => {
      const [error] = errorsOf(open.repeat(100_000));
      expect(error).toMatch(/^1:\d+: /);
    },
  );
});
