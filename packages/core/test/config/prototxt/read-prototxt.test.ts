import { TritonError } from "@tritonjs/protocol";
import { describe, expect, it } from "vitest";
import { MAX_PROTOTXT_BYTES, parsePrototxt, readPrototxt } from "../../../src/config/prototxt.js";

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
