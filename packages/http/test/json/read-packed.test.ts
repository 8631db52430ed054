import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type JsonObject, PackedNumbers } from "../../src/json/json-value.js";
import { parseJson } from "../../src/json/parse-json.js";

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

const parse = (text: string) => parseJson(Buffer.from(text));

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
      { numRuns: 3000 },
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
      { numRuns: 5000 },
    );
  });

  it("do not share memory within one document", () => {
    const json = parse(`{"a":[1,2,3],"b":[${"7,".repeat(5000)}8],"c":[[4],[5]]}`) as JsonObject;
    expect([...(json.get("a") as PackedNumbers).values]).toEqual([1, 2, 3]);
    expect((json.get("b") as PackedNumbers).values.length).toBe(5001);
    expect([...(json.get("c") as PackedNumbers).values]).toEqual([4, 5]);
  });
});
