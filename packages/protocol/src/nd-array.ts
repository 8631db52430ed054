import type { NdArray } from "ndarray";
import ndarray from "ndarray";
import {
  DATA_TYPES,
  type DataType,
  type Elements,
  type ElementsOf,
  elementByteSize,
  type FixedDataType,
  halfArrayFor,
  shownElements,
  typedArrayFor,
} from "./data-types.js";
import { type BFloat16Bits, type Float16Bits, isHalfArray } from "./half-floats.js";
import { elementCount, type Shape, type Tensor } from "./tensor.js";
import { TritonError } from "./triton-error.js";

/** A class of arrays with one data type and number of dimensions: elements, shape, strides, and then the offset. */
type ViewClass = new (elements: Elements, ...numbers: number[]) => NdArray<Elements>;

/**
 * The classes of arrays by data type, then by number of dimensions, each derived from that of the `ndarray` package.
 * `ndarray()` determines the kind of its elements at each call, which takes ten times as long as making the array.
 */
const classes = new Map<DataType, ViewClass[]>();

/** The data type that elements have unless told otherwise, by their constructor. */
const usualDatatypes = new Map<unknown, FixedDataType>();

for (const datatype of DATA_TYPES) {
  classes.set(datatype, []);
  if (datatype !== "BYTES" && datatype !== "BOOL") usualDatatypes.set(arrayClass(datatype), datatype);
}

/** The class of the elements that an array has. */
function arrayClass(datatype: FixedDataType): new (length: number) => Elements {
  return halfArrayFor(datatype) ?? typedArrayFor(datatype);
}

/** Makes an array over elements in row-major order. Of elements that are not those of a tensor, it has no `toJSON`. */
export function viewOf(
  elements: Elements,
  shape: Shape,
  datatype: DataType | undefined = usualDatatypes.get(elements.constructor),
): NdArray<Elements> {
  if (datatype === undefined) return byPackage(elements, shape);
  return make(classes.get(datatype)![shape.length] ?? viewClass(datatype, shape.length), elements, shape);
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
  return new View(elements, ...shape, ...rowMajor(shape), 0);
}

function rowMajor(shape: Shape): number[] {
  const strides = new Array<number>(shape.length);
  let step = 1;
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    strides[axis] = step;
    step *= shape[axis]!;
  }
  return strides;
}

function viewClass(datatype: DataType, dimensions: number): ViewClass {
  const Values = valuesClass(packageClass(datatype, dimensions), datatype);
  const View = halfArrayFor(datatype) === undefined ? Values : halfClass(Values, datatype);
  classes.get(datatype)![dimensions] = View;
  return View;
}

/** The class of the `ndarray` package, or the interpreted one if the package's does not make the expected array. */
function packageClass(datatype: DataType, dimensions: number): ViewClass {
  const elements = datatype === "BYTES" ? [] : new (arrayClass(datatype))(0);
  const shape = Array.from({ length: dimensions }, (_, axis) => axis + 2);
  const view = byPackage(elements, shape);
  const View = view.constructor as ViewClass;
  try {
    const other = make(View, elements, shape);
    const isSame =
      other.data === elements &&
      other.offset === view.offset &&
      same(other.shape, view.shape) &&
      same(other.stride, view.stride);
    if (isSame) return View;
  } catch {
    // The class takes other parameters.
  }
  return InterpretedView as unknown as ViewClass;
}

function same(a: readonly number[], b: readonly number[]): boolean {
  return a.length === b.length && a.every((number, i) => number === b[i]);
}

/**
 * One element as JSON: a 64-bit integer is a number if that is exact (up to 2^53 - 1), else its digits as text. `BYTES`
 * are UTF-8 text, `BOOL` is a boolean, and `FP16` and `BF16` are numbers.
 */
export type JsonElementOf<D extends DataType> = D extends "BYTES"
  ? string
  : D extends "BOOL"
    ? boolean
    : D extends "INT64" | "UINT64"
      ? number | string
      : number;

/** Lists in lists, one level for each dimension. */
export type NestedList<T> = T | NestedList<T>[];

/** The ndarray that callbacks and callers get. It becomes JSON as nested lists. */
export interface ValuesArray<D extends DataType> extends NdArray<ElementsOf<D>> {
  /**
   * The elements as nested lists, the rows first; that of an array without dimensions is its element. 64-bit integers
   * are numbers up to 2^53 - 1 and text beyond, `BYTES` are UTF-8 text, `BOOL` is a boolean.
   *
   * @example
   * ```ts
   * const { y } = await model.inferSample({ x: [1, 2] });
   * y.toArray();              // [3, 4]
   * response.json({ y });     // {"y":[3,4]}
   * ```
   */
  toArray(): NestedList<JsonElementOf<D>>;
  /** The same lists, for `JSON.stringify`, which writes NaN and infinities as null. */
  toJSON(): NestedList<JsonElementOf<D>>;
  lo(...from: number[]): ValuesArray<D>;
  hi(...to: number[]): ValuesArray<D>;
  step(...steps: number[]): ValuesArray<D>;
  transpose(...axes: number[]): ValuesArray<D>;
  pick(...indices: (number | null)[]): ValuesArray<D>;
}

/** Method of an array that makes another one like it over the elements of a view. */
const like = Symbol("like");

/** Member of an array that tells its data type. */
const datatypeOf = Symbol("datatype");

function valuesClass(View: ViewClass, datatype: DataType): ViewClass {
  const read = readerOf(datatype);
  class ValuesView extends View {
    toArray(): unknown {
      return nested(contiguousElements(this), this.shape, read, 0, 0, this.size);
    }

    toJSON(): unknown {
      return this.toArray();
    }

    override lo(...from: number[]): NdArray<Elements> {
      return this[like](super.lo(...from));
    }

    override hi(...to: number[]): NdArray<Elements> {
      return this[like](super.hi(...to));
    }

    override step(...steps: number[]): NdArray<Elements> {
      return this[like](super.step(...steps));
    }

    override transpose(...axes: number[]): NdArray<Elements> {
      return this[like](super.transpose(...axes));
    }

    override pick(...indices: (number | null)[]): NdArray<Elements> {
      // The package makes an array without an element of one without dimensions.
      return this[like](this.shape.length === 0 ? this : super.pick(...indices));
    }

    [like]({ data, shape, stride, offset }: NdArray<Elements>): NdArray<Elements> {
      const Class = classes.get(datatype)![shape.length] ?? viewClass(datatype, shape.length);
      return new Class(data, ...shape, ...stride, offset);
    }

    get [datatypeOf](): DataType {
      return datatype;
    }
  }
  return ValuesView;
}

/** The class of arrays of FP16 or BF16, whose elements tell what they hold: `get`, `set` and lists are of numbers. */
function halfClass(Values: ViewClass, datatype: DataType): ViewClass {
  return class HalfView extends Values {
    constructor(elements: Elements, ...numbers: number[]) {
      super(shownElements(datatype, elements), ...numbers);
    }

    toArray(): unknown {
      const elements = contiguousElements(this) as Float16Bits | BFloat16Bits;
      return nested(elements.toFloat32(), this.shape, asIs, 0, 0, this.size);
    }
  };
}

type ReadElement = (element: never) => unknown;

const decoder = new TextDecoder();

const asIs: ReadElement = (element: number) => element;

const exactOrText: ReadElement = (element: bigint) => {
  const number = Number(element);
  return Number.isSafeInteger(number) ? number : String(element);
};

/** Returns a function that reads one element as {@link JsonElementOf} describes it. */
function readerOf(datatype: DataType): ReadElement {
  if (datatype === "BYTES") return (element: Uint8Array) => decoder.decode(element);
  if (datatype === "BOOL") return (element: number) => element !== 0;
  return elementByteSize(datatype) === 8 && datatype !== "FP64" ? exactOrText : asIs;
}

/** The `size` elements from `from` on, as lists of the dimensions from `axis` on. */
function nested(
  elements: Elements,
  shape: Shape,
  read: ReadElement,
  axis: number,
  from: number,
  size: number,
): unknown {
  if (axis === shape.length) return read(elements[from] as never);
  const list = new Array<unknown>(shape[axis]!);
  const step = size / list.length;
  for (let i = 0; i < list.length; i++)
    list[i] = nested(elements, shape, read, axis + 1, from + i * step, step);
  return list;
}

type Index = number | null | undefined;

/**
 * An ndarray without generated code. The `ndarray` package compiles a class for each number of dimensions. Edge
 * runtimes and pages with a strict content security policy forbid that. This class has the same members, and is slower.
 */
class InterpretedView {
  readonly shape: number[];
  readonly stride: number[];
  readonly offset: number;

  /** Takes the shape, the strides and then the offset, as the classes of the package. */
  constructor(
    readonly data: Elements,
    ...numbers: number[]
  ) {
    const dimensions = numbers.length >> 1;
    this.shape = numbers.slice(0, dimensions);
    this.stride = numbers.slice(dimensions, 2 * dimensions);
    this.offset = numbers[2 * dimensions]!;
  }

  get dtype(): string {
    if (isHalfArray(this.data)) return "generic";
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
    const at = this.index(...indices);
    return isHalfArray(this.data) ? this.data.get(at) : this.data[at];
  }

  set(...indices: number[]): unknown {
    const value = indices[this.shape.length] as never;
    const at = this.index(...indices);
    if (isHalfArray(this.data)) this.data.set(at, value);
    else this.data[at] = value;
    return value;
  }

  /** The elements starting at these indices. */
  lo(...from: Index[]): InterpretedView {
    const starts = this.shape.map((_, axis) => (isIndex(from[axis]) ? from[axis] : 0));
    const shape = this.shape.map((dim, axis) => dim - starts[axis]!);
    return new InterpretedView(this.data, ...shape, ...this.stride, this.index(...starts));
  }

  /** The elements before these indices. */
  hi(...to: Index[]): InterpretedView {
    const shape = this.shape.map((dim, axis) => (isIndex(to[axis]) ? to[axis] : dim));
    return new InterpretedView(this.data, ...shape, ...this.stride, this.offset);
  }

  /** Every n-th element along each axis. Negative numbers reverse an axis. */
  step(...steps: Index[]): InterpretedView {
    const by = this.shape.map((_, axis) => steps[axis] ?? 1);
    const last = this.shape.map((dim, axis) => (by[axis]! < 0 ? dim - 1 : 0));
    const shape = this.shape.map((dim, axis) => Math.ceil(dim / Math.abs(by[axis]!)));
    const stride = this.stride.map((step, axis) => step * by[axis]!);
    return new InterpretedView(this.data, ...shape, ...stride, this.index(...last));
  }

  transpose(...axes: Index[]): InterpretedView {
    const from = this.shape.map((_, axis) => axes[axis] ?? axis);
    const shape = from.map((axis) => this.shape[axis]!);
    const stride = from.map((axis) => this.stride[axis]!);
    return new InterpretedView(this.data, ...shape, ...stride, this.offset);
  }

  /** The elements at these indices, without the axes of the indices. */
  pick(...indices: Index[]): InterpretedView {
    const kept = [...this.shape.keys()].filter((axis) => !isIndex(indices[axis]));
    const at = this.shape.map((_, axis) => (isIndex(indices[axis]) ? indices[axis] : 0));
    const [shape, stride] = [this.shape, this.stride].map((numbers) => kept.map((axis) => numbers[axis]!));
    return new InterpretedView(this.data, ...shape!, ...stride!, this.index(...at));
  }

  valueOf(): unknown {
    return this.shape.length === 0 ? this.get() : this;
  }
}

export function interpretedView(elements: Elements, shape: readonly number[]): NdArray<Elements> {
  return make(InterpretedView as unknown as ViewClass, elements, shape);
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
): ValuesArray<DataType> {
  return ndArrayOf(tensor.elements, tensor.shape, tensor.datatype, direction, name, modelName);
}

/** Makes an ndarray over elements in row-major order, as {@link toNdArray}. */
export function ndArrayOf(
  elements: Elements,
  shape: Shape,
  datatype: DataType | undefined,
  direction: "input" | "output",
  name?: string,
  modelName?: string,
): ValuesArray<DataType> {
  if (!Array.isArray(elements)) return viewOf(elements, shape, datatype) as ValuesArray<DataType>;
  const origin = name === undefined || modelName === undefined ? undefined : { direction, name, modelName };
  return bytesArray(elements, shape, origin);
}

/** The data type of a tensor's array, which its elements do not always tell; undefined for other arrays. */
export function arrayDatatype(array: object): DataType | undefined {
  return (array as { readonly [datatypeOf]?: DataType })[datatypeOf];
}

/** Makes an ndarray over some elements of another array. */
export function ndArrayLike(
  array: NdArray<ElementsOf<DataType>>,
  elements: Elements,
  shape: readonly number[],
): NdArray<Elements> {
  return Array.isArray(elements)
    ? bytesArrayLike(array, elements, shape)
    : viewOf(elements, shape, arrayDatatype(array));
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
export function contiguousElements(array: NdArray<ElementsOf<DataType>>): Elements {
  const { shape, stride, offset } = array;
  const data = array.data as Elements;
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
export interface BytesArray extends ValuesArray<"BYTES"> {
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
  lo(...from: number[]): BytesArray;
  hi(...to: number[]): BytesArray;
  step(...steps: number[]): BytesArray;
  transpose(...axes: number[]): BytesArray;
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

/** The classes by number of dimensions. */
const bytesClasses: BytesArrayClass[] = [];

/** An ndarray of byte arrays, in row-major order. */
export function bytesArray(elements: Uint8Array[], shape: Shape, origin?: TensorOrigin): BytesArray {
  return makeBytesArray(elements, shape, rowMajor(shape), 0, origin);
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
  bytesClasses[shape.length] ??= bytesArrayClass(viewClass("BYTES", shape.length));
  const Class = bytesClasses[shape.length]!;
  return new Class(origin, elements, ...shape, ...stride, offset);
}

function bytesArrayClass(View: ViewClass): BytesArrayClass {
  const ViewOfBytes = View as new (...parameters: unknown[]) => ValuesArray<"BYTES">;
  return class BytesView extends ViewOfBytes implements WithOrigin {
    /** A private field: it neither shows nor counts where arrays are compared or cloned. */
    readonly #origin: TensorOrigin | undefined;

    constructor(origin: TensorOrigin | undefined, elements: Elements, ...numbers: unknown[]) {
      super(elements, ...numbers);
      this.#origin = origin;
    }

    [originOf](): TensorOrigin | undefined {
      return this.#origin;
    }

    [like]({ data, shape, stride, offset }: NdArray<Uint8Array[]>): BytesArray {
      return makeBytesArray(data, shape, stride, offset, this.#origin);
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
  } as unknown as BytesArrayClass;
}

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
