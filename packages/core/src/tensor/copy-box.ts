import type { Elements, Shape } from "@tritonjs/protocol";

/** Row-major elements with a shape, starting at an offset. */
export interface ElementGrid {
  readonly elements: Elements;
  readonly shape: Shape;
  /** Index of the first element. */
  readonly offset: number;
}

/**
 * Copies the box `[0, box[0]) x [0, box[1]) x ...` from one grid into another of the same rank and kind of elements.
 */
export function copyBox(from: ElementGrid, to: ElementGrid, box: Shape): void {
  if (box.includes(0)) return;
  copyAxis(from, to, box, 0, from.offset, to.offset, strides(from.shape), strides(to.shape));
}

function copyAxis(
  from: ElementGrid,
  to: ElementGrid,
  box: Shape,
  axis: number,
  fromAt: number,
  toAt: number,
  fromStrides: readonly number[],
  toStrides: readonly number[],
): void {
  if (axis >= box.length - 1) {
    copyRun(from.elements, fromAt, to.elements, toAt, box.at(-1) ?? 1);
    return;
  }
  for (let i = 0; i < box[axis]!; i++) {
    const nextFrom = fromAt + i * fromStrides[axis]!;
    const nextTo = toAt + i * toStrides[axis]!;
    copyAxis(from, to, box, axis + 1, nextFrom, nextTo, fromStrides, toStrides);
  }
}

function copyRun(from: Elements, fromAt: number, to: Elements, toAt: number, count: number): void {
  if (Array.isArray(from) || Array.isArray(to)) {
    for (let i = 0; i < count; i++) to[toAt + i] = from[fromAt + i]!;
    return;
  }
  (to as Float32Array).set((from as Float32Array).subarray(fromAt, fromAt + count), toAt);
}

function strides(shape: Shape): number[] {
  const steps = new Array<number>(shape.length).fill(1);
  for (let axis = shape.length - 2; axis >= 0; axis--) steps[axis] = steps[axis + 1]! * shape[axis + 1]!;
  return steps;
}
