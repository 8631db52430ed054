import ndarray from "ndarray";
import { describe, expect, it } from "vitest";
import { DATA_TYPES, type Elements, typedArrayFor } from "../../src/data-types.js";
import { viewOf } from "../../src/nd-array.js";

class Own extends Float32Array {}

const kinds: readonly (readonly [string, (count: number) => Elements])[] = [
  ...DATA_TYPES.filter((type) => type !== "BYTES").map(
    (type) => [type, (count: number) => new (typedArrayFor(type))(count)] as const,
  ),
  ["BYTES", (count) => Array.from({ length: count }, () => new Uint8Array(1))],
  ["a Buffer", (count) => Buffer.alloc(count) as Elements],
  ["a class derived from a typed array", (count) => new Own(count) as Elements],
];

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

it("two ndarrays of one tensor share only their elements", () => {
  const elements = new Float32Array(4);
  const [one, other] = [viewOf(elements, [2, 2]), viewOf(elements, [2, 2])];
  one.shape[0] = 7;
  expect(other.shape).toEqual([2, 2]);
  expect(one.data).toBe(other.data);
});
