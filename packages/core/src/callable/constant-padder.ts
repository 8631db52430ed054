import ndarray, { type NdArray } from "ndarray";
import type { GroupOutputs, GroupPadFunction } from "./group-by-values.js";
import { emptyLike } from "./rows.js";

/**
 * Makes a `padFn` for `groupByValues`. Along each axis but the first, every output is filled up at the end to its
 * longest size in any group.
 *
 * @param padValue value of the added elements; a bigint for 64-bit integers. BYTES get empty elements. @default 0
 * @throws Error from the padder when an output has different types in different groups.
 */
export function constantPadder(padValue: number | bigint = 0): GroupPadFunction {
  return (groups) => {
    const shapes = longest(groups);
    return groups.map((group) =>
      Object.fromEntries(
        Object.entries(group).map(([name, values]) => [name, padded(values, shapes.get(name)!, padValue)]),
      ),
    );
  };
}

/** The smallest row shape that has room for the rows of every group, by output. */
function longest(groups: readonly GroupOutputs[]): Map<string, number[]> {
  const shapes = new Map<string, number[]>();
  const kinds = new Map<string, unknown>();
  for (const [name, values] of groups.flatMap((group) => Object.entries(group))) {
    const shape = values.shape.slice(1);
    const known = shapes.get(name);
    if (known === undefined) {
      shapes.set(name, shape);
      kinds.set(name, kindOf(values));
    } else if (kinds.get(name) !== kindOf(values)) {
      throw new Error("All input arrays for given input name must have the same dtype.");
    } else {
      shapes.set(
        name,
        shape.map((dim, axis) => Math.max(dim, known[axis] ?? 0)),
      );
    }
  }
  return shapes;
}

function kindOf({ data }: NdArray): unknown {
  return Object.getPrototypeOf(data);
}

function padded(values: NdArray, rowShape: readonly number[], padValue: number | bigint): NdArray {
  const shape = [values.shape[0]!, ...rowShape];
  const size = shape.reduce((product, dim) => product * dim, 1);
  const elements = emptyLike(values.data, size);
  if (Array.isArray(elements)) elements.fill(new Uint8Array());
  else fill(elements, isBig(elements) ? BigInt(padValue) : Number(padValue));
  const out = ndarray(elements as Float32Array, shape);
  const index = values.shape.map(() => 0);
  for (let i = 0; i < values.size; i++) {
    out.set(...index, values.get(...index));
    for (let axis = index.length - 1; axis >= 0 && ++index[axis]! === values.shape[axis]; axis--)
      index[axis] = 0;
  }
  return out;
}

function fill(elements: { fill(value: number | bigint): unknown }, value: number | bigint): void {
  elements.fill(value);
}

function isBig(elements: ArrayLike<unknown>): boolean {
  return elements instanceof BigInt64Array || elements instanceof BigUint64Array;
}
