import type { NdArray } from "ndarray";
import ndarray from "ndarray";
import type { Elements } from "./data-types.js";
import type { Shape } from "./tensor.js";

/** A class of the `ndarray` package, which makes one for each kind of elements and number of dimensions. */
type ViewClass = new (elements: Elements, ...numbers: number[]) => NdArray<Elements>;

/**
 * The classes by the constructor of their elements, then by number of dimensions; null if the class does not make the
 * expected array. `ndarray()` determines the kind of its elements at each call, which takes ten times as long as making
 * the array.
 */
const classes = new Map<unknown, (ViewClass | null)[]>();
for (const name of ["Int8", "Int16", "Int32", "Uint8", "Uint16", "Uint32", "Float32", "Float64"] as const) {
  classes.set(globalThis[`${name}Array`], []);
}
classes.set(BigInt64Array, []);
classes.set(BigUint64Array, []);

export function viewOf(elements: Elements, shape: Shape): NdArray<Elements> {
  const known = classes.get(elements.constructor);
  if (known === undefined) return byPackage(elements, shape);
  const View = known[shape.length];
  if (View) return make(View, elements, shape);
  const view = byPackage(elements, shape);
  if (View === undefined) known[shape.length] = classOf(view);
  return view;
}

/** Makes an ndarray with the package. Where generated code is forbidden, makes an array without it. */
export function byPackage(elements: Elements, shape: Shape): NdArray<Elements> {
  try {
    return ndarray<Elements>(elements, shape as number[]);
  } catch (error) {
    if (error instanceof EvalError) return interpretedView(elements, shape);
    throw error;
  }
}

function make(View: ViewClass, elements: Elements, shape: Shape): NdArray<Elements> {
  if (shape.length === 1) return new View(elements, shape[0]!, 1, 0);
  if (shape.length === 2) return new View(elements, shape[0]!, shape[1]!, shape[1]!, 1, 0);
  const strides = new Array<number>(shape.length);
  let step = 1;
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    strides[axis] = step;
    step *= shape[axis]!;
  }
  return new View(elements, ...shape, ...strides, 0);
}

function classOf(view: NdArray<Elements>): ViewClass | null {
  const View = view.constructor as ViewClass;
  const { data, shape, stride, offset } = view;
  try {
    const other = make(View, data, shape);
    const isSame =
      other.data === data &&
      other.offset === offset &&
      same(other.shape, shape) &&
      same(other.stride, stride);
    return isSame ? View : null;
  } catch {
    return null;
  }
}

function same(a: readonly number[], b: readonly number[]): boolean {
  return a.length === b.length && a.every((number, i) => number === b[i]);
}

type Index = number | null | undefined;

/**
 * An ndarray without generated code. The `ndarray` package compiles a class for each number of dimensions. Edge
 * runtimes and pages with a strict content security policy forbid that. This class has the same members, and is slower.
 */
export class InterpretedView {
  constructor(
    readonly data: Elements,
    readonly shape: number[],
    readonly stride: number[],
    readonly offset: number,
  ) {}

  get dtype(): string {
    return Array.isArray(this.data) ? "array" : this.data.constructor.name.replace("Array", "").toLowerCase();
  }

  get dimension(): number {
    return this.shape.length;
  }

  get size(): number {
    return this.shape.reduce((size, dim) => size * dim, 1);
  }

  /** The axes, the one with the smallest stride first. */
  get order(): number[] {
    return [...this.stride.keys()].sort((a, b) => Math.abs(this.stride[a]!) - Math.abs(this.stride[b]!));
  }

  index(...indices: number[]): number {
    return this.stride.reduce((at, step, axis) => at + step * indices[axis]!, this.offset);
  }

  get(...indices: number[]): unknown {
    return this.data[this.index(...indices)];
  }

  set(...indices: number[]): unknown {
    const value = indices[this.shape.length] as never;
    this.data[this.index(...indices)] = value;
    return value;
  }

  /** The elements starting at these indices. */
  lo(...from: Index[]): InterpretedView {
    const starts = this.shape.map((_, axis) => (isIndex(from[axis]) ? from[axis] : 0));
    const shape = this.shape.map((dim, axis) => dim - starts[axis]!);
    return new InterpretedView(this.data, shape, [...this.stride], this.index(...starts));
  }

  /** The elements before these indices. */
  hi(...to: Index[]): InterpretedView {
    const shape = this.shape.map((dim, axis) => (isIndex(to[axis]) ? to[axis] : dim));
    return new InterpretedView(this.data, shape, [...this.stride], this.offset);
  }

  /** Every n-th element along each axis. Negative numbers reverse an axis. */
  step(...steps: Index[]): InterpretedView {
    const by = this.shape.map((_, axis) => steps[axis] ?? 1);
    const last = this.shape.map((dim, axis) => (by[axis]! < 0 ? dim - 1 : 0));
    const shape = this.shape.map((dim, axis) => Math.ceil(dim / Math.abs(by[axis]!)));
    const stride = this.stride.map((step, axis) => step * by[axis]!);
    return new InterpretedView(this.data, shape, stride, this.index(...last));
  }

  transpose(...axes: Index[]): InterpretedView {
    const from = this.shape.map((_, axis) => axes[axis] ?? axis);
    const shape = from.map((axis) => this.shape[axis]!);
    const stride = from.map((axis) => this.stride[axis]!);
    return new InterpretedView(this.data, shape, stride, this.offset);
  }

  /** The elements at these indices, without the axes of the indices. */
  pick(...indices: Index[]): InterpretedView {
    const kept = [...this.shape.keys()].filter((axis) => !isIndex(indices[axis]));
    const at = this.shape.map((_, axis) => (isIndex(indices[axis]) ? indices[axis] : 0));
    const [shape, stride] = [this.shape, this.stride].map((numbers) => kept.map((axis) => numbers[axis]!));
    return new InterpretedView(this.data, shape!, stride!, this.index(...at));
  }

  valueOf(): unknown {
    return this.shape.length === 0 ? this.get() : this;
  }
}

export function interpretedView(elements: Elements, shape: readonly number[]): NdArray<Elements> {
  const stride = new Array<number>(shape.length);
  let step = 1;
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    stride[axis] = step;
    step *= shape[axis]!;
  }
  return new InterpretedView(elements, [...shape], stride, 0) as unknown as NdArray<Elements>;
}

function isIndex(index: Index): index is number {
  return typeof index === "number" && index >= 0;
}
