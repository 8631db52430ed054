import { doubleText } from "@tritonjs/protocol";
import { describe, expect, it } from "vitest";
import { ByteWriter, MAX_DOUBLE_BYTES, writeDouble } from "../../src/json/write-json.js";

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

it("ByteWriter writes tensors of any doubles", () => {
  const values = [0, -0, 0.1, 1 / 3, -1e300, Number.NaN, Infinity, ...many(() => random() * 100)];
  const writer = new ByteWriter().ascii("[").doubles(Float64Array.from(values)).ascii("]");
  expect(writer.bytes().toString()).toBe(`[${values.map(doubleText).join(",")}]`);
});
