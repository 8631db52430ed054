import fc from "fast-check";
import ndarray, { type NdArray } from "ndarray";
import { describe, expect, it } from "vitest";
import { shownElements } from "../../src/data-types.js";
import {
  BFloat16Bits,
  bfloat16ToFloat32,
  Float16Bits,
  float16ToFloat32,
  float32ToBfloat16,
  float32ToFloat16,
  fromBfloat16,
  fromFloat16,
  toBfloat16,
  toFloat16,
} from "../../src/half-floats.js";
import { interpretedView, toNdArray } from "../../src/nd-array.js";
import { Tensor } from "../../src/tensor.js";
import { inputTensor, tensorFromValue } from "../../src/tensor-from-value.js";

/** Bits of 1, -2, 2.5, the smallest subnormal, infinity and a NaN with a payload. */
const bits = {
  FP16: [0x3c00, 0xc000, 0x4100, 0x0001, 0x7c00, 0xfe01],
  BF16: [0x3f80, 0xc000, 0x4020, 0x0001, 0x7f80, 0xffc1],
} as const;

const numbers = {
  FP16: [1, -2, 2.5, 2 ** -24, Infinity, NaN],
  BF16: [1, -2, 2.5, 2 ** -133, Infinity, NaN],
} as const;

describe("half arrays", () => {
  it("bits copy from other bits, and ndarrays over them convert", () => {
    for (const Bits of [Float16Bits, BFloat16Bits]) {
      const elements = new Bits(3);
      elements.set([1, 2], 1);
      expect(Array.from(elements)).toEqual([0, 1, 2]);
      elements.set(0, 1);
      expect(ndarray(elements, [3]).get(0)).toBe(1);
      expect(elements.map((bit) => bit * 2)).toEqual(Uint16Array.of(elements[0]! * 2, 2, 4));
      expect(elements.slice(1)).toBeInstanceOf(Bits);
    }
  });
});

describe.each(["FP16", "BF16"] as const)("an ndarray of %s", (datatype) => {
  const [a, b, c, d, e, f] = numbers[datatype];
  const tensor = (shape: number[], given: readonly number[] = bits[datatype]) =>
    Tensor.fromElements(datatype, shape, Uint16Array.from(given));
  const array = (shape: number[], given?: readonly number[]) => toNdArray(tensor(shape, given), "output");

  it("reads numbers in any order of its axes", () => {
    const x = array([2, 3]);
    expect([x.get(0, 0), x.get(1, 0), x.get(1, 2), x.get(9, 9)]).toEqual([a, d, f, undefined]);
    expect(x.transpose(1, 0).toArray()).toEqual([[a, d], [b, e], [c, f]]); // biome-ignore format: a matrix
    expect(x.lo(1, 1).get(0, 0)).toBe(e);
    expect(x.pick(0, null).step(-1).toArray()).toEqual([c, b, a]);
    expect(x.hi(1, 2).toJSON()).toEqual([[a, b]]);
    expect(x.pick(0, 2).toArray()).toBe(c);
    expect(array([1, 1, 1, 1], [bits[datatype][1]]).toArray()).toEqual([[[[b]]]]);
  });

  it("stores the nearest number, in the memory of its tensor", () => {
    const given = tensor([2, 3]);
    const x = toNdArray(given);
    x.transpose(1, 0).set(0, 1, datatype === "FP16" ? 1 + 2 ** -11 : 1 + 2 ** -8);
    x.set(0, 1, -0);
    expect(given.elements.slice(0, 4)).toEqual(
      Uint16Array.of(bits[datatype][0], 0x8000, bits[datatype][2], bits[datatype][0]),
    );
  });

  it.each([[[0]], [[0, 3]], [[2, 0]]])("may have no elements: shape %j", (shape) => {
    const x = array(shape, []);
    expect(x.toArray()).toEqual(shape[0] === 2 ? [[], []] : []);
    expect((x.data as Float16Bits).toFloat32()).toHaveLength(0);
    expect(tensorFromValue(x, { what: "x", datatype, shape }).shape).toEqual(shape);
  });

  it("keeps its memory and the bits of NaN on the way from a tensor to a tensor", () => {
    const given = tensor([2, 3]);
    const x = toNdArray(given);
    for (const value of [x, x.data, (x.data as Float16Bits).subarray(0), ndarray(x.data as never, [2, 3])]) {
      const { elements } = tensorFromValue(value, { what: "x", datatype, shape: [2, 3] });
      expect(elements.constructor).toBe(Uint16Array);
      expect((elements as Uint16Array).buffer).toBe((given.elements as Uint16Array).buffer);
    }
    const turned = tensorFromValue(x.transpose(1, 0), { what: "x", datatype, shape: [3, 2] }).elements;
    // A Float16Array loses the bits of NaN when its elements are put in order.
    expect(turned.slice(0, 5)).toEqual(Uint16Array.from([0, 3, 1, 4, 2], (i) => bits[datatype][i]!));
  });

  it("tells its data type to a request without one", () => {
    for (const value of [array([6]), array([6]).data, [array([6]).data]])
      expect(inputTensor("x", value as never).datatype).toBe(datatype);
  });

  it("is the same where code cannot be generated", () => {
    const elements = shownElements(datatype, tensor([2, 3]).elements);
    const x = interpretedView(elements, [2, 3]) as NdArray<Float16Bits>;
    x.set(0, 1, 2.5);
    expect([x.get(0, 0), x.get(0, 1), x.transpose(1, 0).get(2, 1)]).toEqual([a, c, f]);
    expect(x.dtype).toBe("generic");
  });
});

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
      { numRuns: 500 },
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
