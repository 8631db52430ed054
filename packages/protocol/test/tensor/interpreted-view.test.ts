import ndarray from "ndarray";
import { describe, expect, it } from "vitest";
import { interpretedView } from "../../src/nd-array.js";

const data = Float32Array.from({ length: 24 }, (_, i) => i);

/** Pairs of arrays with the same elements: from the package, and without generated code. */
function pair(shape: number[]) {
  return [ndarray(data, shape), interpretedView(data, shape)] as const;
}

type View = ReturnType<typeof pair>[number];

/** Everything that can be read of an array. */
function read(view: View): unknown {
  const { shape, stride, offset, size, dimension, dtype } = view;
  const elements: unknown[] = [];
  const walk = (indices: number[]): void => {
    if (indices.length === shape.length) elements.push([view.index(...indices), view.get(...indices)]);
    else for (let i = 0; i < shape[indices.length]!; i++) walk([...indices, i]);
  };
  walk([]);
  const about = { shape: [...shape], stride: [...stride], offset, size, dimension, dtype };
  return { ...about, order: [...view.order], elements };
}

describe("an ndarray without generated code", () => {
  it.each<[string, (view: View) => unknown]>([
    ["itself", (view) => view],
    ["lo", (view) => view.lo(1, 0, 2)],
    ["lo of some axes", (view) => view.lo(null as never, 1)],
    ["hi", (view) => view.hi(1, 2, 3)],
    ["hi of some axes", (view) => view.hi(null as never, 2)],
    ["step", (view) => view.step(1, 2, 3)],
    ["step backwards", (view) => view.step(-1, 1, -2)],
    ["transpose", (view) => view.transpose(2, 0, 1)],
    ["pick", (view) => view.pick(1, null, 2)],
    ["pick of one axis", (view) => view.pick(null, 2)],
    ["pick of all axes", (view) => view.pick(1, 2, 3)],
    ["several in a row", (view) => view.lo(0, 1, 1).step(1, 1, -1).transpose(1, 2, 0).pick(1).hi(2, 1)],
  ])("gives the same view as the package: %s", (_name, operation) => {
    const [expected, own] = pair([2, 3, 4]);
    expect(read(operation(own) as View)).toEqual(read(operation(expected) as View));
  });

  it("has the same members for every number of dimensions", () => {
    for (const shape of [[], [24], [4, 6], [1, 2, 3, 4]]) {
      const [expected, own] = pair(shape);
      expect(read(own)).toEqual(read(expected));
    }
    expect(interpretedView(Uint8Array.of(7), []).valueOf()).toBe(7);
  });

  it("writes into the elements", () => {
    const view = interpretedView(Int32Array.of(1, 2, 3, 4), [2, 2]);
    view.set(1, 0, 9);
    expect([...(view.data as Int32Array)]).toEqual([1, 2, 9, 4]);
  });
});
