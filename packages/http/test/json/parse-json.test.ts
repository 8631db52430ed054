import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { JsonDouble, JsonObject, type JsonValue, PackedNumbers } from "../../src/json/json-value.js";
import { elementsOf, parseJson } from "../../src/json/parse-json.js";
import { decodeText } from "../../src/json/text.js";

/** A value as `JSON.parse` would return it. */
function plain(value: JsonValue): unknown {
  if (value instanceof JsonDouble) return value.value;
  if (typeof value === "bigint") return Number(value);
  if (value instanceof Uint8Array) return decodeText(value);
  if (value instanceof JsonObject)
    return Object.fromEntries([...value].map(([name, member]) => [name, plain(member)]));
  if (Array.isArray(value) || value instanceof PackedNumbers) return elementsOf(value).map(plain);
  return value;
}

const parse = (text: string) => parseJson(Buffer.from(text));

/** JSON texts with white space between the tokens. */
const texts = fc
  .tuple(fc.jsonValue({ noUnicodeString: false }), fc.constantFrom("", " ", "\t"))
  .map(([value, space]) => JSON.stringify(value, undefined, space));

describe("the JSON reader of requests", () => {
  it("agrees with JSON.parse on every valid document", () => {
    fc.assert(
      fc.property(texts, (text) => {
        expect(plain(parse(text))).toEqual(plainNumbers(JSON.parse(text)));
      }),
    );
  });

  it("agrees with JSON.parse on which documents are valid", () => {
    const mutated = fc
      .tuple(texts, fc.nat(), fc.constantFrom(...'{}[]",:0-.eE \\x'))
      .map(([text, at, put]) => {
        const place = at % (text.length + 1);
        return text.slice(0, place) + put + text.slice(place + 1);
      });
    fc.assert(
      fc.property(mutated, (text) => {
        const expected = attempt(() => JSON.parse(text));
        const got = attempt(() => plain(parse(text)));
        // Lone high surrogates and numbers that are too large are rejected here; JSON.parse accepts both.
        if (got.fault?.includes("surrogate") || got.fault?.includes("too big")) return;
        expect(got.fault === undefined).toBe(expected.fault === undefined);
      }),
    );
  });

  it("reads numbers as JSON.parse does, in arrays and alone", () => {
    fc.assert(
      fc.property(
        fc.array(
          fc.oneof(
            fc.double({ noNaN: true, noDefaultInfinity: true }),
            fc.float({ noNaN: true, noDefaultInfinity: true }),
            fc.integer(),
            fc.maxSafeInteger(),
          ),
        ),
        (numbers) => {
          const text = JSON.stringify(numbers);
          expect(plain(parse(text))).toEqual(JSON.parse(text).map(unsigned));
          for (const number of numbers) expect(plain(parse(String(number)))).toEqual(unsigned(number));
        },
      ),
    );
  });

  it.each([
    ["{", "Missing a name for object member. at 1"],
    ["", "The document is empty. at 0"],
    ["   ", "The document is empty. at 3"],
    ['{"a":1,}', "Missing a name for object member. at 7"],
    ['{"a" 1}', "Missing a colon after a name of object member. at 5"],
    ['{"a":1 "b"}', "Missing a comma or '}' after an object member. at 7"],
    ["[1 2]", "Missing a comma or ']' after an array element. at 3"],
    ["[01]", "Missing a comma or ']' after an array element. at 2"],
    ["[1,]", "Invalid value. at 3"],
    ["[1.]", "Miss fraction part in number. at 3"],
    ["[1e]", "Miss exponent in number. at 3"],
    ["[1e309]", "Number too big to be stored in double. at 1"],
    ["[0e309]", "Number too big to be stored in double. at 1"],
    ["[nan]", "Invalid value. at 2"],
    ["[Infinite]", "Invalid value. at 8"],
    ["[+1]", "Invalid value. at 1"],
    ["{}{}", "The document root must not be followed by other values. at 2"],
    ['["\\x"]', "Invalid escape character in string. at 2"],
    ['["a\tb"]', "Invalid escape character in string. at 3"],
    ['["\\u12g4"]', "Incorrect hex digit after \\u escape in string. at 2"],
    ['["\\ud83d"]', "The surrogate pair in string is invalid. at 2"],
    ['["abc', "Missing a closing quotation mark in string. at 5"],
  ])("explains what is wrong with %j", (text, fault) => {
    expect(() => parse(text)).toThrow(`failed to parse the request JSON buffer: ${fault}`);
  });

  it("accepts NaN, Inf and Infinity", () => {
    expect(plain(parse("[NaN,-NaN,Inf,-Inf,Infinity,-Infinity]"))).toEqual([
      Number.NaN,
      Number.NaN,
      Infinity,
      -Infinity,
      Infinity,
      -Infinity,
    ]);
  });

  it("distinguishes 64-bit integers from doubles", () => {
    expect(parse("18446744073709551615")).toBe(18446744073709551615n);
    expect(parse("-9223372036854775808")).toBe(-9223372036854775808n);
    expect(parse("18446744073709551616")).toBeInstanceOf(JsonDouble);
    expect(parse("1.0")).toBeInstanceOf(JsonDouble);
    expect(Object.is(parse("-0"), 0)).toBe(true);
    expect(Object.is((parse("-0.0") as JsonDouble).value, -0)).toBe(true);
  });

  it("keeps the first of duplicate keys, and any key", () => {
    const object = parse('{"a":1,"a":2,"__proto__":3,"0":4,":0":5}') as JsonObject;
    expect([...object]).toEqual([
      ["a", 1],
      ["__proto__", 3],
      ["0", 4],
      [":0", 5],
    ]);
  });

  it("accepts a byte order mark and a final NUL", () => {
    expect(parse("\ufeff[1]\0")).toBeInstanceOf(PackedNumbers);
  });

  it("reads any depth without exhausting the stack", () => {
    const depth = 100_000;
    expect(() => parse("[".repeat(depth) + "]".repeat(depth))).not.toThrow();
    expect(() => parse('{"a":'.repeat(depth))).toThrow("Invalid value.");
  });

  it("rejects more values than memory should hold", () => {
    expect(() => parse(`[${"{},".repeat(2 ** 21)}1]`)).toThrow(
      "request JSON: expected at most 131072 objects, got more",
    );
    expect(() => parse(`[{},${"[],".repeat(2 ** 19)}1]`)).toThrow(
      "request JSON: expected at most 524288 values, got more",
    );
    const keys = Array.from({ length: 65_537 }, (_, key) => `"${key}":1`);
    expect(() => parse(`{${keys.join(",")}}`)).toThrow(
      "request JSON: expected at most 65536 members of an object, got more",
    );
    const numbers = parse(`[${"1,".repeat(2 ** 21)}1]`) as PackedNumbers;
    expect(numbers.values).toHaveLength(2 ** 21 + 1);
  });

  it("finds the members of objects of any size", () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom("a", "b", "0", "10", ":1", "__proto__", ..."cdefghijk")),
        (names) => {
          const object = parse(`{${names.map((name, at) => `"${name}":${at}`).join(",")}}`) as JsonObject;
          const first = new Map([...names.entries()].reverse().map(([at, name]) => [name, at]));
          for (const [name, at] of first) expect(object.get(name)).toBe(at);
          expect(new Map(object)).toEqual(first);
          expect([...object.written()]).toEqual(names);
          expect([object.size, object.get("missing")]).toEqual([names.length, undefined]);
        },
      ),
    );
  });

  it("reads a mixed array in linear time", () => {
    const numbers = "1,".repeat(20_000);
    const text = `${"[".repeat(90)}${numbers}"x"${"]".repeat(90)}`;
    expect(() => parse(text)).not.toThrow();
  });
});

/** The integer -0 is read as 0. */
function unsigned(value: number): number {
  return value === 0 ? 0 : value;
}

function plainNumbers(value: unknown): unknown {
  if (typeof value === "number") return unsigned(value);
  if (Array.isArray(value)) return value.map(plainNumbers);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, plainNumbers(member)]));
}

function attempt(action: () => unknown): { readonly fault?: string } {
  try {
    action();
    return {};
  } catch (thrown) {
    return { fault: (thrown as Error).message };
  }
}
