import type { NdArray } from "ndarray";
import type { Elements } from "./data-types.js";
import { byPackage, InterpretedView, viewOf } from "./nd-array-views.js";
import type { Tensor } from "./tensor.js";
import { elementCount, type Shape } from "./tensor.js";
import { TritonError } from "./triton-error.js";

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

type ViewClass = new (elements: Elements, ...numbers: unknown[]) => NdArray<Uint8Array[]>;

/** The classes by number of dimensions, each derived from that of the `ndarray` package. */
const classes: BytesArrayClass[] = [];

/** An ndarray of byte arrays, in row-major order. */
export function bytesArray(elements: Uint8Array[], shape: Shape, origin?: TensorOrigin): BytesArray {
  const stride = new Array<number>(shape.length);
  let step = 1;
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    stride[axis] = step;
    step *= shape[axis]!;
  }
  return make(elements, shape, stride, 0, origin);
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

function make(
  elements: Uint8Array[],
  shape: Shape,
  stride: readonly number[],
  offset: number,
  origin: TensorOrigin | undefined,
): BytesArray {
  let Class = classes[shape.length];
  if (Class === undefined) {
    const plain = byPackage([], new Array<number>(shape.length).fill(0));
    Class = bytesArrayClass(plain.constructor as ViewClass);
    classes[shape.length] = Class;
  }
  return Class.prototype instanceof InterpretedView
    ? new Class(origin, elements, [...shape], [...stride], offset)
    : new Class(origin, elements, ...shape, ...stride, offset);
}

function bytesArrayClass(View: ViewClass): BytesArrayClass {
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
      return make(data, shape, stride, offset, this.#origin);
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
