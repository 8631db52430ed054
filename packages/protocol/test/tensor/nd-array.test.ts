import fc from "fast-check";
import ndarray from "ndarray";
import { describe, expect, it } from "vitest";
import { fp32 } from "../../../core/test/support/tensors.js";
import { DATA_TYPES, type Elements, typedArrayFor } from "../../src/data-types.js";
import { contiguousElements, isNdArray, toNdArray, viewOf } from "../../src/nd-array.js";

/** Ways to make the strides of an ndarray irregular. */
const views = fc.array(
  fc.record({
    transpose: fc.boolean(),
    low: fc.nat({ max: 1 }),
    step: fc.constantFrom(1, 2, -1, -2),
    axis: fc.nat({ max: 2 }),
  }),
  { maxLength: 4 },
);

describe("the elements of an ndarray", () => {
  it("are read in row-major order, whatever the strides", () => {
    fc.assert(
      fc.property(
        fc.tuple(fc.nat({ max: 4 }), fc.nat({ max: 4 }), fc.nat({ max: 4 })),
        views,
        (shape, changes) => {
          const size = shape.reduce((product, dim) => product * dim, 1);
          let array = ndarray(
            Int32Array.from({ length: size }, (_, i) => i),
            shape,
          );
          for (const { transpose, low, step, axis } of changes) {
            const only = (value: number, other: number) => [0, 1, 2].map((a) => (a === axis ? value : other));
            if (transpose) array = array.transpose(2, 0, 1);
            if (array.shape[axis]! > low) array = array.lo(...only(low, 0));
            array = array.step(...only(step, 1));
          }
          const walked: number[] = [];
          const [a, b, c] = array.shape as [number, number, number];
          for (let i = 0; i < a; i++)
            for (let j = 0; j < b; j++) for (let k = 0; k < c; k++) walked.push(array.get(i, j, k));
          expect([...(contiguousElements(array) as Int32Array)]).toEqual(walked);
        },
      ),
      { numRuns: 300 },
    );
  });

  it("are the data itself when they fill it in order", () => {
    const data = Float32Array.of(1, 2, 3, 4);
    expect(contiguousElements(ndarray(data, [2, 2]))).toBe(data);
  });

  it("are a view when they fill a part of the data in order", () => {
    const data = Float32Array.of(1, 2, 3, 4);
    const part = contiguousElements(ndarray(data, [1, 2], [2, 1], 2)) as Float32Array;
    expect(part).toEqual(Float32Array.of(3, 4));
    expect(part.buffer).toBe(data.buffer);
  });

  it("are repeated where a stride is 0", () => {
    expect(contiguousElements(ndarray(Float32Array.of(1, 2), [3, 2], [0, 1]))).toEqual(
      Float32Array.of(1, 2, 1, 2, 1, 2),
    );
  });

  it("are gathered from lists and Buffers", () => {
    const lists = ndarray([Uint8Array.of(1), Uint8Array.of(2), Uint8Array.of(3)], [3], [-1], 2);
    expect(contiguousElements(lists)).toEqual([Uint8Array.of(3), Uint8Array.of(2), Uint8Array.of(1)]);
    const buffer = ndarray(Buffer.from([1, 2, 3, 4]), [2, 2], [1, 2]);
    expect(contiguousElements(buffer)).toEqual(Uint8Array.of(1, 3, 2, 4));
  });
});

describe("ndarrays", () => {
  it("are views of a tensor's elements", () => {
    const tensor = fp32([2, 2], [1, 2, 3, 4]);
    const array = toNdArray(tensor);
    expect(array.data).toBe(tensor.elements);
    expect(array.shape).toEqual([2, 2]);
    expect(array.get(1, 0)).toBe(3);
  });

  it("are distinguished from other objects", () => {
    expect(isNdArray(ndarray(new Float32Array(2)))).toBe(true);
    for (const other of [null, undefined, 3, [1], new Float32Array(2), {}, { shape: [1], data: [1] }]) {
      expect(isNdArray(other)).toBe(false);
    }
  });
});

class Own extends Float32Array {}

const kinds: readonly (readonly [string, (count: number) => Elements])[] = [
  ...DATA_TYPES.filter((type) => type !== "BYTES").map(
    (type) => [type, (count: number) => new (typedArrayFor(type))(count)] as const,
  ),
  ["BYTES", (count) => Array.from({ length: count }, () => new Uint8Array(1))],
  ["a Buffer", (count) => Buffer.alloc(count) as Elements],
  ["a class derived from a typed array", (count) => new Own(count) as Elements],
];

describe("view classes", () => {
  it("two ndarrays of one tensor share only their elements", () => {
    const elements = new Float32Array(4);
    const [one, other] = [viewOf(elements, [2, 2]), viewOf(elements, [2, 2])];
    one.shape[0] = 7;
    expect(other.shape).toEqual([2, 2]);
    expect(one.data).toBe(other.data);
  });
});

describe.each(kinds)("an ndarray over elements of %s", (_, elementsOf) => {
  it.each([[[]], [[6]], [[2, 3]], [[1, 2, 3]], [[3, 1, 2, 1]], [[0]], [[2, 0, 3]]])(
    "has the shape %j and equals the one that the ndarray package makes, on every call",
    (shape) => {
      const elements = elementsOf(shape.reduce((product, dim) => product * dim, 1));
      const expected = ndarray(elements as Float32Array, shape);
      for (let time = 0; time < 3; time++) {
        const { data, ...view } = viewOf(elements, shape);
        expect(data).toBe(elements);
        const { data: same, ...other } = expected;
        expect(view).toEqual(other);
        expect(viewOf(elements, shape)).toBeInstanceOf(expected.constructor);
        expect(viewOf(elements, shape).dtype).toBe(expected.dtype);
      }
    },
  );
});
