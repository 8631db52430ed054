import type { NdArray } from "ndarray";
import ndarray from "ndarray";
import { DATA_TYPES, type Elements, typedArrayFor } from "./data-types.js";
import { elementCount, type Shape, type Tensor } from "./tensor.js";
import { TritonError } from "./triton-error.js";

/** A class of the `ndarray` package, which makes one for each kind of elements and number of dimensions. */
type ViewClass = new (elements: Elements, ...numbers: number[]) => NdArray<Elements>;

/**
 * The classes by the constructor of their elements, then by number of dimensions; null if the class does not make the
 * expected array. `ndarray()` determines the kind of its elements at each call, which takes ten times as long as making
 * the array.
 */
const classes = new Map<unknown, (ViewClass | null)[]>();
for (const datatype of DATA_TYPES) if (datatype !== "BYTES") classes.set(typedArrayFor(datatype), []);

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
function byPackage(elements: Elements, shape: Shape): NdArray<Elements> {
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
class InterpretedView {
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

/**
 * Makes the ndarray that callbacks and callers see: a view of the tensor's elements. That of a `BYTES` tensor is a
 * {@link BytesArray}. The names are for its errors.
 */
export function toNdArray(
  tensor: Tensor,
  direction: "input" | "output" = "input",
  name?: string,
  modelName?: string,
): NdArray<Elements> {
  return ndArrayOf(tensor.elements, tensor.shape, direction, name, modelName);
}

/** Makes an ndarray over elements in row-major order, as {@link toNdArray}. */
export function ndArrayOf(
  elements: Elements,
  shape: Shape,
  direction: "input" | "output",
  name?: string,
  modelName?: string,
): NdArray<Elements> {
  if (!Array.isArray(elements)) return viewOf(elements, shape);
  const origin = name === undefined || modelName === undefined ? undefined : { direction, name, modelName };
  return bytesArray(elements, shape, origin);
}

/** Makes an ndarray over some elements of another array. */
export function ndArrayLike(
  array: NdArray<Elements>,
  elements: Elements,
  shape: readonly number[],
): NdArray<Elements> {
  return Array.isArray(elements) ? bytesArrayLike(array, elements, shape) : viewOf(elements, shape);
}

/** True for any object made by the `ndarray` package, also by another copy of it. */
export function isNdArray(value: unknown): value is NdArray<Elements> {
  if (typeof value !== "object" || value === null) return false;
  const candidate = value as Partial<NdArray>;
  return (
    Array.isArray(candidate.shape) &&
    Array.isArray(candidate.stride) &&
    typeof candidate.offset === "number" &&
    typeof candidate.data === "object"
  );
}

/**
 * The elements of an ndarray in row-major order: a view if they are already stored in that order, else a copy.
 *
 * @throws TritonError INVALID_ARG for a shape with anything but integers of at least 0, and strides that leave the data
 */
export function contiguousElements(array: NdArray<Elements>): Elements {
  const { data, shape, stride, offset } = array;
  const size = elementCount(shape);
  if (isRowMajor(shape, stride)) {
    if (offset === 0 && data.length === size) return data;
    return Array.isArray(data)
      ? data.slice(offset, offset + size)
      : (data as Float32Array).subarray(offset, offset + size);
  }
  return gather(data as Float32Array, shape, stride, offset, size);
}

function isRowMajor(shape: readonly number[], stride: readonly number[]): boolean {
  let expected = 1;
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    const dim = shape[axis]!;
    if (dim > 1 && stride[axis] !== expected) return false;
    expected *= dim;
  }
  return true;
}

/** Checks that strides stay within the elements, because users can set any strides. */
function assertInside(
  length: number,
  shape: readonly number[],
  stride: readonly number[],
  offset: number,
): void {
  let [first, last] = [offset, offset];
  for (const [axis, dim] of shape.entries()) {
    if (dim === 0) return;
    const reach = (dim - 1) * stride[axis]!;
    if (reach < 0) first += reach;
    else last += reach;
  }
  if (first >= 0 && last < length) return;
  throw new TritonError(
    "INVALID_ARG",
    `ndarray of shape [${shape.join()}] and stride [${stride.join()}]: expected more elements than its ${length}`,
    { reason: "INVALID_INPUT" },
  );
}

/** Walks the axes like an odometer: the last one changes fastest. */
function gather(
  data: Float32Array,
  shape: readonly number[],
  stride: readonly number[],
  offset: number,
  size: number,
): Elements {
  assertInside(data.length, shape, stride, offset);
  // A subclass of Uint8Array, such as Buffer, may not support `new`.
  const like = (data as unknown) instanceof Uint8Array ? Uint8Array : data.constructor;
  const out = Array.isArray(data) ? new Array(size) : new (like as Float32ArrayConstructor)(size);
  const index = new Array<number>(shape.length).fill(0);
  let from = offset;
  for (let i = 0; i < size; i++) {
    out[i] = data[from]!;
    for (let axis = shape.length - 1; axis >= 0; axis--) {
      from += stride[axis]!;
      if (++index[axis]! < shape[axis]!) break;
      from -= stride[axis]! * shape[axis]!;
      index[axis] = 0;
    }
  }
  return out;
}

/**
 * The ndarray of a `BYTES` tensor. Its elements are byte arrays. It also reads them as UTF-8 text and as JSON.
 *
 * @example
 * ```ts
 * const { answer, details } = await model.inferSample({ question: "hi" });
 * answer.text();                       // the only element
 * details.json<{ score: number }>();   // the only element, parsed
 *
 * batch(({ question }) => ({ answer: question.strings().map((text) => text.toUpperCase()) })); // all elements
 * ```
 */
export interface BytesArray extends NdArray<Uint8Array[]> {
  /**
   * One element as text. Bytes that are not UTF-8 become U+FFFD.
   *
   * @param index position of the element, as for `get`; may be left out if there is exactly one element
   * @throws TritonError for an index outside of the array, and for no index unless there is exactly one element.
   */
  text(...index: number[]): string;
  /** All elements as text, in row-major order. */
  strings(): string[];
  /**
   * One element, parsed as JSON.
   *
   * @typeParam T type of the value, which is not checked
   * @param index as for {@link text}
   * @throws TritonError that names the model, the tensor and the element, for text that is not JSON: INVALID_ARG for an
   * input, INTERNAL for an output; otherwise as {@link text}.
   */
  json<T = unknown>(...index: number[]): T;
  /** All elements, parsed as JSON, in row-major order. Throws as {@link json}. */
  jsonValues<T = unknown>(): T[];
  /** The elements at these indices, without the axes of the indices. */
  pick(...indices: (number | null)[]): BytesArray;
}

/** Names a tensor in the errors of its array. */
export interface TensorOrigin {
  readonly direction: "input" | "output";
  readonly name: string;
  readonly modelName: string;
}

type BytesArrayClass = new (
  origin: TensorOrigin | undefined,
  elements: Elements,
  ...numbers: unknown[]
) => BytesArray;

type BytesViewClass = new (elements: Elements, ...numbers: unknown[]) => NdArray<Uint8Array[]>;

/** The classes by number of dimensions, each derived from that of the `ndarray` package. */
const bytesClasses: BytesArrayClass[] = [];

/** An ndarray of byte arrays, in row-major order. */
export function bytesArray(elements: Uint8Array[], shape: Shape, origin?: TensorOrigin): BytesArray {
  const stride = new Array<number>(shape.length);
  let step = 1;
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    stride[axis] = step;
    step *= shape[axis]!;
  }
  return makeBytesArray(elements, shape, stride, 0, origin);
}

/** Makes an ndarray over some elements of another one, whose errors name the same tensor. */
export function bytesArrayLike(array: object, elements: Uint8Array[], shape: Shape): BytesArray {
  return bytesArray(elements, shape, (array as Partial<WithOrigin>)[originOf]?.());
}

/** Method of an array that returns its origin. */
const originOf = Symbol("originOf");

interface WithOrigin {
  [originOf](): TensorOrigin | undefined;
}

function makeBytesArray(
  elements: Uint8Array[],
  shape: Shape,
  stride: readonly number[],
  offset: number,
  origin: TensorOrigin | undefined,
): BytesArray {
  let Class = bytesClasses[shape.length];
  if (Class === undefined) {
    const plain = byPackage([], new Array<number>(shape.length).fill(0));
    Class = bytesArrayClass(plain.constructor as BytesViewClass);
    bytesClasses[shape.length] = Class;
  }
  return Class.prototype instanceof InterpretedView
    ? new Class(origin, elements, [...shape], [...stride], offset)
    : new Class(origin, elements, ...shape, ...stride, offset);
}

function bytesArrayClass(View: BytesViewClass): BytesArrayClass {
  return class BytesView extends View implements BytesArray, WithOrigin {
    /** A private field: it neither shows nor counts where arrays are compared or cloned. */
    readonly #origin: TensorOrigin | undefined;

    constructor(origin: TensorOrigin | undefined, elements: Elements, ...numbers: unknown[]) {
      super(elements, ...numbers);
      this.#origin = origin;
    }

    [originOf](): TensorOrigin | undefined {
      return this.#origin;
    }

    text(...index: number[]): string {
      return decoder.decode(this.#element(index));
    }

    strings(): string[] {
      return this.#all((element) => decoder.decode(element));
    }

    json<T>(...index: number[]): T {
      return this.#parsed(this.#element(index), index) as T;
    }

    jsonValues<T>(): T[] {
      return this.#all((element, index) => this.#parsed(element, index) as T);
    }

    override pick(...indices: (number | null)[]): BytesArray {
      const { data, shape, stride, offset } = super.pick(...indices);
      return makeBytesArray(data, shape, stride, offset, this.#origin);
    }

    #element(index: readonly number[]): Uint8Array {
      const { shape } = this;
      if (index.length === 0 && this.size === 1) return this.get(...shape.map(() => 0));
      const isInside =
        index.length === shape.length && index.every((at, axis) => at >= 0 && at < shape[axis]!);
      const element: unknown = isInside ? this.get(...index) : undefined;
      if (element instanceof Uint8Array) return element;
      const got = index.length === 0 ? "none" : `[${index.join(", ")}]`;
      throw new TritonError(
        "INVALID_ARG",
        `${nameOf(this.#origin)}: expected the index of an element of shape [${shape.join(", ")}], got ${got}`,
        { reason: "INVALID_INPUT" },
      );
    }

    #all<T>(read: (element: Uint8Array, index: readonly number[]) => T): T[] {
      const { shape } = this;
      const index = shape.map(() => 0);
      const values = new Array<T>(this.size);
      for (let i = 0; i < values.length; i++) {
        values[i] = read(this.get(...index), index);
        for (let axis = shape.length - 1; axis >= 0 && ++index[axis]! === shape[axis]; axis--)
          index[axis] = 0;
      }
      return values;
    }

    #parsed(element: Uint8Array, index: readonly number[]): unknown {
      const text = decoder.decode(element);
      try {
        return JSON.parse(text);
      } catch (cause) {
        throw notJson(text, index, this.#origin, cause);
      }
    }
  };
}

const decoder = new TextDecoder();

/** Longest part of an element that an error shows. */
const MAX_SHOWN = 40;

function notJson(
  text: string,
  index: readonly number[],
  origin: TensorOrigin | undefined,
  cause: unknown,
): TritonError {
  const at = index.length === 0 ? "" : `, element [${index.join(", ")}]`;
  const shown = text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}...` : text;
  const message = `${nameOf(origin)}${at}: expected JSON, got '${shown}'`;
  return origin?.direction === "output"
    ? new TritonError("INTERNAL", message, { reason: "INVALID_OUTPUT", cause })
    : new TritonError("INVALID_ARG", message, { reason: "INVALID_INPUT", cause });
}

function nameOf(origin: TensorOrigin | undefined): string {
  if (origin === undefined) return "BYTES tensor";
  return `${origin.direction} '${origin.name}' of model '${origin.modelName}'`;
}
