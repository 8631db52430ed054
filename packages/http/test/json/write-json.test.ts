import { doubleText } from "@tritonjs/protocol";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { PackedNumbers } from "../../src/json/json-value.js";
import { parseJson } from "../../src/json/parse-json.js";
import { nearestDouble } from "../../src/json/read-number.js";
import { decodeText, encodeText } from "../../src/json/text.js";
import { ByteWriter, MAX_DOUBLE_BYTES, writeDouble } from "../../src/json/write-json.js";

/** Any character, of one or two code units. The table of fast-check's own characters takes a second to build. */
const anyCharacter = fc
  .oneof(fc.integer({ max: 0xd7ff, min: 0 }), fc.integer({ min: 0xe000, max: 0x10ffff }))
  .map((point) => String.fromCodePoint(point));

describe("text", () => {
  it("text decoding turns any bytes into strings and back", () => {
    fc.assert(
      fc.property(fc.uint8Array(), (bytes) => {
        expect(new Uint8Array(encodeText(decodeText(bytes)))).toEqual(bytes);
      }),
    );
  });

  it("text decoding keeps valid text unchanged", () => {
    fc.assert(
      fc.property(fc.string({ unit: anyCharacter }), (text) => {
        expect(decodeText(Buffer.from(text))).toBe(text);
        expect(encodeText(text)).toEqual(Buffer.from(text));
      }),
    );
  });

  it("ByteWriter writes strings that read back as the same bytes", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 3000 }), (bytes) => {
        const written = new ByteWriter().stringBytes(bytes).bytes();
        expect(new Uint8Array(parseJson(written) as Uint8Array)).toEqual(bytes);
      }),
    );
  });

  it("ByteWriter escapes the characters that Triton escapes, in upper case", () => {
    const written = new ByteWriter().string('"\\/\b\f\n\r\t\u0001\u001f\u007f\u2028é').bytes();
    expect(written.toString()).toBe('"\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u001F\u007f\u2028é"');
  });

  it("doubleText prints doubles that read back as the same double", () => {
    fc.assert(
      fc.property(fc.double(), (value) => {
        expect(Number(doubleText(value))).toEqual(value);
        expect(doubleText(value)).toMatch(/[.eN]|Infinity/);
      }),
    );
  });

  it.each([
    [1, "1.0"],
    [-0, "-0.0"],
    [0.1, "0.1"],
    [1e-6, "0.000001"],
    [1e-7, "1e-7"],
    [1e20, "100000000000000000000.0"],
    [1e21, "1e21"],
    [Number.NaN, "NaN"],
    [-Infinity, "-Infinity"],
  ])("doubleText prints %d as %s", (value, text) => {
    expect(doubleText(value)).toBe(text);
  });
});

/** Pseudo-random numbers, the same in each run. */
function randomNumbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

const random = randomNumbers(5);

/** Texts of the values that `writeDouble` accepts, and the share that it accepts. */
function written(values: readonly number[]): { texts: Map<number, string>; share: number } {
  const bytes = Buffer.alloc(2 * MAX_DOUBLE_BYTES);
  const texts = new Map<number, string>();
  for (const value of values) {
    const end = writeDouble(bytes, 0, value);
    if (end >= 0) texts.set(value, bytes.toString("latin1", 0, end));
  }
  return { texts, share: texts.size / new Set(values).size };
}

const many = (make: (i: number) => number): number[] => Array.from({ length: 5000 }, (_, i) => make(i));

const sign = (): number => (random() < 0.5 ? -1 : 1);

const bits = new Float64Array(1);

const words = new Uint32Array(bits.buffer);

const kinds: Record<string, { values: number[]; least: number }> = {
  "FP32 between -1 and 1": { values: many(() => sign() * Math.fround(random())), least: 0.9 },
  "FP32 of four decimals": { values: many((i) => Math.fround(((i * 7919) % 20_000) / 1e4 - 1)), least: 0.5 },
  "doubles of any size": { values: many(() => sign() * random() * 10 ** (random() * 24 - 8)), least: 0.5 },
  "any bits": {
    values: many(() => {
      words[0] = random() * 2 ** 32;
      words[1] = random() * 2 ** 32;
      return bits[0]!;
    }),
    least: 0.01,
  },
  "neighbours of powers of ten": {
    values: many((i) => 10 ** ((i % 24) - 7) * (1 + ((i % 97) - 48) * Number.EPSILON)),
    least: 0.1,
  },
  "neighbours of powers of two": {
    values: many((i) => 2 ** ((i % 60) - 25) * (1 + (i % 5) * Number.EPSILON)),
    least: 0.1,
  },
  "few digits": { values: many((i) => i / 10 ** (i % 9)), least: 0 },
};

describe("write double", () => {
  it("ByteWriter writes tensors of any doubles", () => {
    const values = [0, -0, 0.1, 1 / 3, -1e300, Number.NaN, Infinity, ...many(() => random() * 100)];
    const writer = new ByteWriter().ascii("[").doubles(Float64Array.from(values)).ascii("]");
    expect(writer.bytes().toString()).toBe(`[${values.map(doubleText).join(",")}]`);
  });
});

describe("writeDouble", () => {
  it.each(Object.keys(kinds))("writes the shortest text that reads back: %s", (kind) => {
    const { values, least } = kinds[kind]!;
    const { texts, share } = written(values);
    expect(share).toBeGreaterThanOrEqual(least);
    expect([...texts].filter(([value, text]) => text !== doubleText(value))).toEqual([]);
    expect(Math.max(0, ...[...texts.values()].map((text) => text.length))).toBeLessThanOrEqual(
      MAX_DOUBLE_BYTES,
    );
  });

  it("declines values that have no plain form", () => {
    const others = [
      0,
      -0,
      1,
      -3,
      0.5,
      1e-7,
      1e21,
      2 ** -10,
      Number.NaN,
      Infinity,
      -Infinity,
      Number.MIN_VALUE,
    ];
    expect(written(others).texts.size).toBe(0);
  });
});

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

describe("decimal", () => {
  it("nearestDouble returns the nearest double or undefined", () => {
    fc.assert(
      fc.property(fc.oneof(decimals, halves), (text) => {
        const found = nearestDouble(Buffer.from(text), 0, text.length, text.length - text.indexOf(".") - 1);
        if (found !== undefined) expect(found).toBe(Number(text));
      }),
      { numRuns: 1000 },
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
      { numRuns: 500 },
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
});
