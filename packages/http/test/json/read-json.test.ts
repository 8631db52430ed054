import { encodeBytes } from "@tritonjs/protocol";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  JsonDouble,
  JsonObject,
  type JsonValue,
  PackedNumbers,
  PackedStrings,
} from "../../src/json/json-value.js";
import { elementsOf, jsonSteps, parseJson } from "../../src/json/parse-json.js";
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

/** Any character, of one or two code units. The table of fast-check's own characters takes a second to build. */
const anyCharacter = fc
  .oneof(fc.integer({ max: 0xd7ff, min: 0 }), fc.integer({ min: 0xe000, max: 0x10ffff }))
  .map((point) => String.fromCodePoint(point));

/** JSON texts with white space between the tokens. */
const texts = fc
  .tuple(fc.jsonValue({ stringUnit: anyCharacter }), fc.constantFrom("", " ", "\t"))
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
    expect(() => parse(`[${"{},".repeat(2 ** 17)}{}]`)).toThrow(
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

describe("json steps", () => {
  function plain(value: JsonValue): unknown {
    if (value instanceof JsonDouble) return value.value;
    if (value instanceof Uint8Array) return decodeText(value);
    if (value instanceof JsonObject) return [...value].map(([name, member]) => [name, plain(member)]);
    if (Array.isArray(value) || value instanceof PackedNumbers || value instanceof PackedStrings)
      return elementsOf(value).map(plain);
    return value;
  }

  /** Reads a document in steps of a few bytes; also returns the number of steps. */
  function inSteps(text: string, stepBytes: number): { value: JsonValue; steps: number } {
    const reading = jsonSteps(Buffer.from(text), 2 ** 20, stepBytes);
    for (let steps = 1; ; steps++) {
      const { done, value } = reading.next();
      if (done) return { value, steps };
    }
  }

  function outcome(read: () => JsonValue): unknown {
    try {
      return plain(read());
    } catch (thrown) {
      return (thrown as Error).message;
    }
  }

  const scalars = fc.oneof(
    fc.integer(),
    fc.double({ noNaN: true }),
    fc.boolean(),
    fc.string(),
    fc.constant(null),
  );

  const rows = fc.oneof(
    fc.array(fc.oneof(fc.integer(), fc.bigInt(0n, 2n ** 64n - 1n).map(String))),
    fc.array(fc.array(fc.string())),
    fc.array(fc.array(fc.boolean())),
    fc.array(fc.oneof(scalars, fc.array(scalars))),
  );

  const texts = fc
    .oneof(fc.jsonValue(), fc.dictionary(fc.string(), rows))
    .map((value) => JSON.stringify(value));

  const mutated = fc
    .tuple(texts, fc.nat(), fc.constantFrom("", ...'{}[]",:0-.eE \\x'))
    .map(([text, at, put]) => {
      const place = at % (text.length + 1);
      return text.slice(0, place) + put + text.slice(place + 1);
    });

  describe("a document that is read in steps", () => {
    it("has the same values and faults as one that is read at once, wherever the steps end", () => {
      fc.assert(
        fc.property(fc.oneof(texts, mutated), fc.integer({ min: 1, max: 40 }), (text, stepBytes) => {
          expect(outcome(() => inSteps(text, stepBytes).value)).toEqual(
            outcome(() => parseJson(Buffer.from(text))),
          );
        }),
      );
    });

    it("takes a step for each part of a long array", () => {
      for (const element of ["1", "0.5", '"a"', "true", "[1]", "{}", "9007199254740993", "1e5"]) {
        const text = `{"data":[${Array(10_000).fill(element)}]}`;
        // One call of the inner loop for numbers may read 4096 of them.
        expect(inSteps(text, 100).steps, element).toBeGreaterThanOrEqual(4);
      }
    });

    it("packs arrays of strings into the wire form of a tensor", () => {
      fc.assert(
        fc.property(fc.array(fc.array(fc.string(), { minLength: 1 }), { minLength: 1 }), (strings) => {
          const { value } = inSteps(JSON.stringify(strings), 16);
          const packed = value as PackedStrings;
          expect(
            Buffer.compare(packed.bytes, encodeBytes(strings.flat().map((one) => Buffer.from(one)))),
          ).toBe(0);
          expect(packed.length).toBe(strings.length);
        }),
      );
    });

    it("has at most 2,097,152 strings in arrays", () => {
      const strings = (count: number) => `["",${'"",'.repeat(count - 2)}""]`;
      expect((inSteps(strings(2 ** 21), 1 << 20).value as PackedStrings).length).toBe(2 ** 21);
      expect(() => inSteps(strings(2 ** 21 + 1), 1 << 20)).toThrow(
        "request JSON: expected at most 2097152 strings in arrays, got more",
      );
    });
  });
});

const digits = (max: number) =>
  fc.array(fc.integer({ min: 0, max: 9 }), { minLength: 1, maxLength: max }).map((all) => all.join(""));

const integer = digits(18).map((text) => text.replace(/^0+(?=.)/, ""));

const fraction = fc.option(digits(20), { nil: undefined });

const exponent = fc.option(fc.tuple(fc.constantFrom("e", "E", "e+", "e-"), fc.integer({ min: 0, max: 30 })), {
  nil: undefined,
  freq: 8,
});

/** Numbers in every form that JSON allows. */
const numbers = fc
  .tuple(fc.constantFrom("", "-"), integer, fraction, exponent)
  .map(
    ([minus, whole, after, power]) =>
      minus + whole + (after === undefined ? "" : `.${after}`) + (power === undefined ? "" : power.join("")),
  );

const separators = fc.constantFrom(",", ", ", " ,", "\n,\t", ",  ");

/** An array of numbers, flat or of rows. */
const arrays = fc
  .tuple(fc.array(numbers, { minLength: 1, maxLength: 40 }), separators, fc.constantFrom(0, 1, 3))
  .map(([tokens, separator, columns]) => {
    if (columns === 0) return `[${tokens.join(separator)}]`;
    const rows = [];
    for (let i = 0; i < tokens.length; i += columns)
      rows.push(`[${tokens.slice(i, i + columns).join(separator)}]`);
    return `[${rows.join(separator)}]`;
  });

function outcome<T>(read: () => T): T | "refused" {
  try {
    return read();
  } catch {
    return "refused";
  }
}

describe("arrays of numbers in JSON", () => {
  it("are read as packed numbers equal to those of JSON.parse", () => {
    fc.assert(
      fc.property(arrays, (text) => {
        const packed = parse(text);
        const expected: number[] = JSON.parse(text).flat();
        const unsafe = text
          .match(/(?<![\d.])\d{16,}(?![\d.eE])/g)
          ?.some((token) => !Number.isSafeInteger(+token));
        if (!(packed instanceof PackedNumbers)) throw new Error(`not packed: ${text}`);
        expect(packed.exact !== undefined).toBe(unsafe ?? false);
        // The integer -0 is read as 0.
        const values = [...packed.values].map((value, i) =>
          value === 0 && expected[i] === 0 ? expected[i] : value,
        );
        expect(values).toEqual(expected);
        expect(packed.integers).toBe(!/[.eE]/.test(text));
        if (!text.includes("-")) expect(packed.minuses).toBe(false);
        if (expected.some((value) => value < 0)) expect(packed.minuses).toBe(true);
      }),
      { numRuns: 500 },
    );
  });

  it("keep the sign of a zero that has a fraction", () => {
    const { values } = parse("[-0.0,-0,-0e0,0.0]") as PackedNumbers;
    expect([...values]).toEqual([-0, 0, -0, 0]);
  });

  it("are rejected where JSON.parse rejects them, cut or changed anywhere", () => {
    const changed = fc
      .tuple(arrays, fc.nat(), fc.constantFrom("", ...'[],0-.eE x"'))
      .map(([text, place, put]) => {
        const at = place % text.length;
        return put === "" ? text.slice(0, at) : text.slice(0, at) + put + text.slice(at + 1);
      });
    fc.assert(
      fc.property(changed, (text) => {
        const expected = outcome(() => JSON.parse(text).flat(9).length as number);
        // Exponents that are too large are always rejected here; JSON.parse accepts them.
        if (text.includes('"') || /[eE]\+?\d{3}/.test(text)) return;
        const packed = outcome(() => parse(text));
        if (expected === "refused") expect(packed).toBe("refused");
        else if (packed instanceof PackedNumbers) expect(packed.values.length).toBe(expected);
        else expect(packed).not.toBe("refused");
      }),
      { numRuns: 800 },
    );
  });

  it("do not share memory within one document", () => {
    const json = parse(`{"a":[1,2,3],"b":[${"7,".repeat(5000)}8],"c":[[4],[5]]}`) as JsonObject;
    expect([...(json.get("a") as PackedNumbers).values]).toEqual([1, 2, 3]);
    expect((json.get("b") as PackedNumbers).values.length).toBe(5001);
    expect([...(json.get("c") as PackedNumbers).values]).toEqual([4, 5]);
  });
});
