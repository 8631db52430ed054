import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseAnswerJson, toJson } from "../src/json.js";

/** Makes the reader use its own parser instead of `JSON.parse`. */
const slowly = (text: string) => (parseAnswerJson(`[${text},NaN]`) as unknown[])[0];

/** Converts bigints to the doubles that `JSON.parse` returns. */
function rounded(value: unknown): unknown {
  if (typeof value === "bigint") return Number(value);
  if (Array.isArray(value)) return value.map(rounded);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, rounded(member)]));
}

describe("parseJson", () => {
  it("agrees with JSON.parse", () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        expect(rounded(slowly(text))).toEqual(JSON.parse(text));
        expect(rounded(parseAnswerJson(text))).toEqual(JSON.parse(text));
      }),
    );
  });

  it("rejects what JSON.parse rejects", () => {
    const spoiled = fc
      .tuple(fc.json(), fc.nat(), fc.constantFrom("", "{", "}", "[", "]", '"', ",", ":", "\\", "0", "-", "."))
      .map(([text, at, piece]) => {
        const position = at % (text.length + 1);
        return text.slice(0, position) + piece + text.slice(position + 1);
      });
    fc.assert(
      fc.property(spoiled, (text) => {
        let expected: unknown;
        try {
          expected = JSON.parse(`[${text}]`);
        } catch {
          expect(() => slowly(text)).toThrow(SyntaxError);
          return;
        }
        expect(rounded(parseAnswerJson(`[[${text}],NaN]`))).toEqual([expected, Number.NaN]);
      }),
      { numRuns: 500 },
    );
  });

  it("keeps integers that a number cannot hold", () => {
    expect(
      parseAnswerJson("[9007199254740991,9007199254740993,-9223372036854775808,18446744073709551615]"),
    ).toEqual([9007199254740991, 9007199254740993n, -(2n ** 63n), 2n ** 64n - 1n]);
    expect(parseAnswerJson("0.12345678901234567")).toBe(Number("0.12345678901234567"));
  });

  it.each(["NaN", "Infinity", "-Infinity"])("reads %s", (token) => {
    expect(parseAnswerJson(`{"a":[${token}]}`)).toEqual({ a: [Number(token)] });
  });

  it.each([
    "-NaN",
    "nan",
    "NaNa",
    "Infinit",
    "[NaN",
    '{"NaN":1,}',
    '{"NaN" 1}',
    "NaN 1",
    '"NaN',
    '["Inf\n"]',
  ])("rejects %s", (text) => {
    expect(() => parseAnswerJson(text)).toThrow(SyntaxError);
  });

  it("rejects very deep nesting", () => {
    expect(() => parseAnswerJson(`${"[".repeat(100_000)}NaN`)).toThrow(SyntaxError);
  });

  it("accepts any member name", () => {
    const object = parseAnswerJson('{"__proto__":NaN,"a":1}');
    expect(Object.entries(object as object)).toEqual([
      ["__proto__", Number.NaN],
      ["a", 1],
    ]);
  });
});

describe("toJson", () => {
  it("writes text that parseJson reads back", () => {
    const values = {
      a: [1n, 2.5, Number.NaN, 2n ** 64n - 1n],
      b: { c: "ä\n", d: null, e: true },
      f: undefined,
    };
    expect(toJson(values)).toBe('{"a":[1,2.5,NaN,18446744073709551615],"b":{"c":"ä\\n","d":null,"e":true}}');
    expect(parseAnswerJson(toJson(values))).toEqual({
      a: [1, 2.5, Number.NaN, 2n ** 64n - 1n],
      b: { c: "ä\n", d: null, e: true },
    });
  });

  it("writes typed arrays as arrays", () => {
    expect(toJson({ x: Float32Array.of(0.5, 1), y: BigInt64Array.of(5n) })).toBe('{"x":[0.5,1],"y":[5]}');
  });
});
