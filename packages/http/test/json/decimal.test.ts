import fc from "fast-check";
import { expect, it } from "vitest";
import { PackedNumbers } from "../../src/json/json-value.js";
import { parseJson } from "../../src/json/parse-json.js";
import { nearestDouble } from "../../src/json/read-number.js";

/** Decimals of up to 22 digits with a fraction. */
const decimals = fc
  .tuple(fc.bigInt(0n, 10n ** 22n - 1n), fc.integer({ min: 1, max: 22 }))
  .map(([digits, fraction]) => {
    const text = String(digits).padStart(fraction + 1, "0");
    return `${text.slice(0, -fraction)}.${text.slice(-fraction)}`;
  });

/** Decimals halfway between two doubles, and their neighbours. */
const halves = fc
  .tuple(fc.integer({ min: 2 ** 30, max: 2 ** 31 }), fc.integer({ min: -1, max: 1 }))
  .map(([value, offset]) => {
    const unit = 2 ** (30 - 52);
    const exact = BigInt(value) * 10n ** 12n + BigInt(Math.round((unit / 2) * 1e12)) + BigInt(offset);
    return `${exact / 10n ** 12n}.${String(exact % 10n ** 12n).padStart(12, "0")}`;
  });

it("nearestDouble returns the nearest double or undefined", () => {
  fc.assert(
    fc.property(fc.oneof(decimals, halves), (text) => {
      const found = nearestDouble(Buffer.from(text), 0, text.length, text.length - text.indexOf(".") - 1);
      if (found !== undefined) expect(found).toBe(Number(text));
    }),
    { numRuns: 5000 },
  );
});

it("nearestDouble reads the doubles that programs print", () => {
  fc.assert(
    fc.property(fc.double({ min: 1e-5, max: 1e15, noNaN: true }), (value) => {
      const text = String(value);
      if (!text.includes(".") || text.includes("e") || text.length < 17) return;
      expect(nearestDouble(Buffer.from(text), 0, text.length, text.length - text.indexOf(".") - 1)).toBe(
        value,
      );
    }),
    { numRuns: 2000 },
  );
});

it("a decimal has the same value in an array and alone", () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(decimals, fc.boolean()), { minLength: 1 }), (numbers) => {
      const texts = numbers.map(([text, minus]) => (minus ? `-${text}` : text));
      const read = parseJson(Buffer.from(`[${texts.join(",")}]`)) as PackedNumbers;
      expect(read).toBeInstanceOf(PackedNumbers);
      expect([...read.values]).toEqual(texts.map(Number));
    }),
  );
});
