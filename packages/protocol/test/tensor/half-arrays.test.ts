import ndarray, { type NdArray } from "ndarray";
import { describe, expect, it } from "vitest";
import { shownElements } from "../../src/data-types.js";
import { BFloat16Bits, Float16Bits } from "../../src/half-floats.js";
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
