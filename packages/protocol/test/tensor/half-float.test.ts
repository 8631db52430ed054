import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  bfloat16ToFloat32,
  float16ToFloat32,
  float32ToBfloat16,
  float32ToFloat16,
  fromBfloat16,
  fromFloat16,
  toBfloat16,
  toFloat16,
} from "../../src/half-floats.js";

const all = Uint16Array.from({ length: 65536 }, (_, half) => half);

/** The two formats, each with its exponent mask and mantissa mask. */
const formats = [
  { name: "FP16", read: fromFloat16, write: toFloat16, exponent: 0x7c00, mantissa: 0x3ff },
  { name: "BF16", read: fromBfloat16, write: toBfloat16, exponent: 0x7f80, mantissa: 0x7f },
] as const;

describe.each(formats)("$name", ({ read, write, exponent, mantissa }) => {
  const isNaNHalf = (half: number) => (half & exponent) === exponent && (half & mantissa) !== 0;

  it("round-trips all 65536 values bit for bit, NaN as a NaN of the same sign", () => {
    const wrong = all.filter((half) => {
      const back = write(read(half));
      return isNaNHalf(half) ? !isNaNHalf(back) || (back ^ half) & 0x8000 : back !== half;
    });
    expect(wrong).toHaveLength(0);
  });

  it("increases with its bits", () => {
    for (let half = 1; half <= exponent; half++) {
      if (!(read(half) > read(half - 1))) expect.fail(`${half} is not above its predecessor`);
    }
  });

  it("rounds any number to the nearest value, and ties to even", () => {
    const double = fc.double({ min: 0, max: read(exponent - 1), noNaN: true });
    fc.assert(
      fc.property(double, (value) => {
        const half = write(value);
        const error = Math.abs(read(half) - value);
        const above = half + 1 < exponent ? Math.abs(read(half + 1) - value) : Number.POSITIVE_INFINITY;
        const below = half > 0 ? Math.abs(value - read(half - 1)) : Number.POSITIVE_INFINITY;
        expect(Math.min(above, below)).toBeGreaterThanOrEqual(error);
        if (error > 0 && (error === above || error === below)) expect(half & 1).toBe(0);
        expect(write(-value)).toBe(half | 0x8000);
      }),
      { numRuns: 2000 },
    );
  });

  it("rounds midpoints to even, and anything beside a midpoint to the nearer value", () => {
    for (let half = 0; half < exponent - 1; half += 97) {
      const middle = (read(half) + read(half + 1)) / 2;
      const even = half & 1 ? half + 1 : half;
      expect(write(middle)).toBe(even);
      expect(write(middle * (1 + Number.EPSILON))).toBe(half + 1);
      expect(write(middle * (1 - Number.EPSILON))).toBe(half);
    }
  });

  it("turns numbers that are too large into infinity, and keeps the sign of zero", () => {
    expect(write(1e300)).toBe(exponent);
    expect(write(Number.NEGATIVE_INFINITY)).toBe(exponent | 0x8000);
    expect(write(0)).toBe(0);
    expect(write(-0)).toBe(0x8000);
    expect(write(-1e-320)).toBe(0x8000);
  });
});

describe("known values", () => {
  it("match for FP16: 1, the largest, the smallest normal and the smallest subnormal", () => {
    expect([0x3c00, 0x7bff, 0x0400, 0x0001, 0xc000].map(fromFloat16)).toEqual([
      1,
      65504,
      2 ** -14,
      2 ** -24,
      -2,
    ]);
    expect([65519.99, 65520].map(toFloat16)).toEqual([0x7bff, 0x7c00]);
  });

  it("match for BF16: the upper half of an FP32", () => {
    expect([0x3f80, 0x4049, 0xc000].map(fromBfloat16)).toEqual([1, 3.140625, -2]);
    expect(toBfloat16(Math.PI)).toBe(0x4049);
  });
});

describe("whole arrays", () => {
  it("are converted element by element", () => {
    const values = Float32Array.of(0, -0, 1.5, 65504, Number.POSITIVE_INFINITY);
    expect(float16ToFloat32(float32ToFloat16(values))).toEqual(values);
    expect(bfloat16ToFloat32(float32ToBfloat16([0, -0, 1.5, -2]))).toEqual(Float32Array.of(0, -0, 1.5, -2));
    expect(float32ToFloat16([])).toHaveLength(0);
  });
});
