import type { Data, NdArray } from "ndarray";
import {
  arrayDatatypes,
  type DataType,
  type Elements,
  expectedScalars,
  type FixedDataType,
  type GivenElementsOf,
  isDataType,
  scalarConverter,
  type TypedArray,
  takenArrays,
  takenElements,
  typedArrayFor,
  unknownDataTypeText,
} from "./data-types.js";
import { contiguousElements, isNdArray } from "./nd-array.js";
import { elementCount, type Shape, shapeToString, Tensor } from "./tensor.js";
import { TritonError } from "./triton-error.js";

/** A plain object, which a `BYTES` tensor holds as JSON. Collections and ndarrays are not plain objects. */
export type PlainObject =
  | { readonly [key: string]: unknown }
  // An interface has no index signature.
  | (object & { readonly [Symbol.iterator]?: never; readonly transpose?: never });

/** A scalar that can become an element of a tensor of data type `D`. */
export type ScalarOf<D extends DataType> = D extends "BOOL"
  ? boolean | number
  : D extends "BYTES"
    ? string | Uint8Array | PlainObject
    : D extends "INT64" | "UINT64"
      ? bigint | number
      : number;

/** Nested arrays of any depth. */
export type Nested<T> = T | readonly Nested<T>[];

/**
 * Any value that can become a tensor of data type `D`: an ndarray, a typed array, a list of typed arrays with one for
 * each entry of the first dimension, nested arrays of scalars, or a `Tensor`. A `Float32Array` is rounded to FP16 or
 * BF16; bits of these types are given as `Float16Bits` or `BFloat16Bits`. A typed array, and a list of the elements of `BYTES`,
 * gets the shape of the specification, in which at most one dimension is deduced. An element of `BYTES` is a byte array,
 * a string, or a plain object, which becomes JSON.
 */
export type TensorValue<D extends DataType> =
  | NdArray<Extract<GivenElementsOf<D>, Data>>
  | GivenElementsOf<D>
  | readonly GivenElementsOf<D>[]
  | Nested<ScalarOf<D>>
  | Tensor;

/** Where a value belongs. `what` is used in error messages: `input 'x' of model 'm'`. */
export interface ValueTarget {
  readonly what: string;
  readonly datatype: DataType;
  /** Expected shape, -1 for any size. It gives flat typed arrays their shape. */
  readonly shape: Shape;
  /** Whether a single scalar may be given for a shape of one element. @default false */
  readonly takesScalar?: boolean;
}

interface NumericTarget extends ValueTarget {
  readonly datatype: Exclude<DataType, "BYTES">;
}

/**
 * Makes a tensor from a value of a program. Typed arrays and ndarrays are viewed, not copied; a list of typed arrays is.
 *
 * @param checkShape called before memory for numbers is allocated; it may refuse the shape by throwing
 * @throws TritonError INVALID_ARG that names the tensor, the expected value and the actual one.
 */
export function tensorFromValue(
  value: unknown,
  target: ValueTarget,
  checkShape?: (shape: Shape) => void,
): Tensor {
  if (value instanceof Tensor) {
    checkShape?.(value.shape);
    return checkedTensor(value, target);
  }
  if (isTypedArray(value) && !(target.datatype === "BYTES" && value instanceof Uint8Array)) {
    const elements = checkedElements(value, target);
    const shape = deduceShape(target, elements.length);
    checkShape?.(shape);
    return Tensor.fromElements(target.datatype, shape, elements);
  }
  if (!Array.isArray(value) && isNdArray(value)) {
    checkShape?.(value.shape);
    const elements = checkedElements(contiguousElements(value), target);
    return Tensor.fromElements(target.datatype, [...value.shape], elements);
  }
  if (target.datatype !== "BYTES" && Array.isArray(value) && isTypedArray(value[0])) {
    return tensorOfRows(value, { ...target, datatype: target.datatype }, checkShape);
  }
  if (target.datatype === "BYTES" && target.shape.length !== 1 && isFlat(value)) {
    const elements = toElements(value, target);
    return Tensor.fromElements("BYTES", deduceShape(target, value.length), elements);
  }
  if (target.takesScalar && !Array.isArray(value) && target.shape.every((dim) => dim === 1 || dim === -1)) {
    const shape = target.shape.map(() => 1);
    return Tensor.fromElements(target.datatype, shape, toElements([value], target));
  }
  const shape = shapeOfNested(value, target);
  checkShape?.(shape);
  const scalars: unknown[] = [];
  flatten(value, shape, 0, scalars, target);
  return Tensor.fromElements(target.datatype, shape, toElements(scalars, target));
}

/** True for a list of elements of `BYTES`, which corresponds to a typed array of other data types. */
function isFlat(value: unknown): value is readonly unknown[] {
  return Array.isArray(value) && !value.some(Array.isArray);
}

function isTypedArray(value: unknown): value is TypedArray {
  return ArrayBuffer.isView(value) && !(value instanceof DataView);
}

function checkedElements(elements: Elements, target: ValueTarget): Elements {
  if (target.datatype === "BYTES") {
    if (Array.isArray(elements)) return toElements(elements, target);
    throw mismatch(target, "an array of strings or byte arrays", elements.constructor.name);
  }
  if (Array.isArray(elements)) return toElements(elements, target);
  const given: object = elements;
  const expected = typedArrayFor(target.datatype);
  if (expected === Uint16Array) return words(elements, target.datatype, target, "");
  if (given instanceof expected) return given;
  // A Buffer is a Uint8Array, and a clamped array holds the same bytes.
  if (expected.name === "Uint8Array" && given instanceof Uint8ClampedArray) {
    return new Uint8Array(given.buffer, given.byteOffset, given.length);
  }
  throw mismatch(target, expected.name, elements.constructor.name);
}

/** The elements of UINT16, FP16 or BF16, of which only the first are any `Uint16Array`. */
function words(given: unknown, datatype: FixedDataType, target: ValueTarget, where: string): TypedArray {
  const taken = isTypedArray(given) ? takenElements(datatype, given) : undefined;
  if (taken !== undefined) return taken;
  throw mismatch(target, `${takenArrays(datatype)}${where}`, describe(given));
}

/** Joins typed arrays of the same length, one for each entry of the first dimension. */
function tensorOfRows(
  given: readonly unknown[],
  target: NumericTarget,
  checkShape: ((shape: Shape) => void) | undefined,
): Tensor {
  const [first = 0, ...rest] = target.shape;
  if (first !== -1 && first !== given.length) {
    throw mismatch(target, `rows for shape ${shapeToString(target.shape)}`, `${given.length} typed arrays`);
  }
  const RowArray = typedArrayFor(target.datatype);
  const is16 = RowArray === Uint16Array;
  const rows = is16 ? given.map((row, i) => words(row, target.datatype, target, ` as row ${i}`)) : given;
  const { length } = rows[0] as TypedArray;
  for (const [i, row] of rows.entries()) {
    if (!(row instanceof RowArray)) throw mismatch(target, `a ${RowArray.name} as row ${i}`, describe(row));
    if (row.length !== length)
      throw mismatch(target, `rows of ${length} elements`, `${row.length} in row ${i}`);
  }
  const shape = deduceShape({ ...target, shape: [rows.length, ...rest] }, rows.length * length);
  checkShape?.(shape);
  // A copy of one row is not filled with zeros first.
  const isOne = rows.length === 1;
  const elements = isOne ? new RowArray(rows[0] as TypedArray) : new RowArray(rows.length * length);
  if (!isOne) for (const [i, row] of rows.entries()) elements.set(row as never, i * length);
  return Tensor.fromElements(target.datatype, shape, elements);
}

/** The shape of the target, with its variable dimension deduced from the length. */
function deduceShape(target: ValueTarget, length: number): Shape {
  let unknown = 0;
  let product = 1;
  for (const dim of target.shape) {
    if (dim === -1) unknown++;
    else product *= dim;
  }
  if (unknown === 0 && product === length) return target.shape;
  if (unknown === 1 && product > 0 && length % product === 0) {
    return target.shape.map((dim) => (dim === -1 ? length / product : dim));
  }
  const why = unknown > 1 ? "; the shape has more than one variable dimension, so give an ndarray" : "";
  throw new TritonError(
    "INVALID_ARG",
    `${target.what}: expected elements for shape ${shapeToString(target.shape)}, got an array of ${length}${why}`,
    { reason: "INVALID_INPUT" },
  );
}

function shapeOfNested(value: unknown, target: ValueTarget): number[] {
  const shape: number[] = [];
  for (let level = value; Array.isArray(level); level = level[0]) {
    shape.push(level.length);
    if (shape.length > 32) throw mismatch(target, "nested arrays of at most 32 levels", "deeper ones");
  }
  return shape;
}

function flatten(value: unknown, shape: Shape, depth: number, into: unknown[], target: ValueTarget): void {
  if (depth === shape.length) {
    into.push(value);
    return;
  }
  if (!Array.isArray(value) || value.length !== shape[depth]) {
    const got = Array.isArray(value) ? `${value.length} entries` : typeof value;
    throw mismatch(target, `nested arrays of shape ${shapeToString(shape)}`, `${got} at depth ${depth}`);
  }
  for (const entry of value) flatten(entry, shape, depth + 1, into, target);
}

function toElements(scalars: readonly unknown[], target: ValueTarget): Elements {
  const { datatype } = target;
  if (datatype === "BYTES") return scalars.map((scalar) => toBytes(scalar, target));
  const elements = new (typedArrayFor(datatype))(scalars.length);
  const out: { [index: number]: number | bigint } = elements;
  const convert = scalarConverter(datatype);
  for (let i = 0; i < scalars.length; i++) {
    const element = convert(scalars[i]);
    if (element === undefined) throw mismatch(target, expectedScalars(datatype), describe(scalars[i]));
    out[i] = element;
  }
  return elements;
}

const encoder = new TextEncoder();

function toBytes(scalar: unknown, target: ValueTarget): Uint8Array {
  if (typeof scalar === "string") return encoder.encode(scalar);
  if (scalar instanceof Uint8Array) return scalar;
  if (isPlainObject(scalar)) return encoder.encode(jsonOf(scalar, target));
  throw mismatch(target, "a string, a Uint8Array or a plain object", describe(scalar));
}

function isPlainObject(value: unknown): value is object {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  // The prototype of an object from another realm, such as a test runner's, has no prototype itself.
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

/** A tensor of a program, which may have been made of anything. */
function checkedTensor(tensor: Tensor, target: ValueTarget): Tensor {
  const wanted = `a tensor of ${target.datatype}`;
  const datatype: unknown = tensor.datatype;
  if (datatype !== target.datatype)
    throw mismatch(target, wanted, `one of ${typeof datatype === "string" ? datatype : typeof datatype}`);
  const shape: unknown = tensor.shape;
  if (!Array.isArray(shape) || !shape.every((dim) => Number.isSafeInteger(dim) && dim >= 0)) {
    const got = Array.isArray(shape)
      ? `[${shape.map((dim: unknown) => (typeof dim === "number" ? dim : typeof dim)).join(",")}]`
      : typeof shape;
    throw mismatch(target, `${wanted} with a shape of integers from 0`, got);
  }
  if (!tensor.isSound) throw mismatch(target, wanted, "one made of other elements");
  return tensor;
}

function jsonOf(value: object, target: ValueTarget): string {
  let text: unknown;
  let why = "its toJSON() returned nothing";
  try {
    text = JSON.stringify(value);
  } catch (thrown) {
    why = TritonError.from(thrown).message;
  }
  if (typeof text === "string") return text;
  throw mismatch(target, "an object that JSON can express", `one that it cannot: ${why}`);
}

function describe(value: unknown): string {
  if (typeof value === "number" || typeof value === "boolean") return `${value}`;
  if (typeof value === "bigint") return `${value}n`;
  if (Array.isArray(value)) return "an array";
  if (typeof value === "object" && value !== null && "data" in value && "shape" in value) {
    return "an object { data, shape }: make an ndarray of it with ndarray(data, shape), or give a typed array or nested arrays";
  }
  return value === null
    ? "null"
    : typeof value === "object"
      ? (value.constructor?.name ?? "an object")
      : typeof value;
}

function mismatch(target: ValueTarget, expected: string, got: string): TritonError {
  return new TritonError(
    "INVALID_ARG",
    `${target.what} (${target.datatype}): expected ${expected}, got ${got}`,
    { reason: "INVALID_INPUT" },
  );
}

/** An input with its data type and shape. */
export interface TensorInput {
  /** Data type of the input. @default the data type of the typed array; nested arrays of numbers have none */
  readonly datatype?: DataType;
  /**
   * Shape of the input.
   *
   * @default that of the ndarray or of the nested arrays; a typed array has one dimension, a list of them has two
   */
  readonly shape?: Shape;
  readonly data: TensorValue<DataType>;
}

/** The data type of an array's class: of a `Uint8Array` it is UINT8. */
function datatypeOfArray(array: object): DataType | undefined {
  if (array instanceof Uint8ClampedArray) return "UINT8";
  return arrayDatatypes(array).find((type) => type !== "BOOL");
}

/** Data alone. A plain object would describe the input: as data, it has to be in an array or in a description. */
export type BareData = Exclude<TensorValue<DataType>, PlainObject>;

/**
 * Converts an input in any form to a tensor.
 *
 * @throws TritonError INVALID_ARG that names the input, if its data type is not known or its data does not fit.
 */
export function inputTensor(name: string, input: TensorInput | Tensor | BareData): Tensor {
  if (input instanceof Tensor) return input;
  const described = isDescribed(input) ? input : { data: input };
  const what = `input '${name}'`;
  const datatype = described.datatype ?? datatypeOf(described.data);
  if (datatype === undefined)
    throw invalid(`${what} has no datatype: expected a typed array, or { datatype, shape, data }`);
  if (!isDataType(datatype)) throw invalid(`${what}: ${unknownDataTypeText(datatype)}`);
  const unknownShape = datatype !== "BYTES" && isRows(described.data) ? [-1, -1] : [-1];
  const tensor = tensorFromValue(described.data, { what, datatype, shape: described.shape ?? unknownShape });
  return withShape(what, tensor, described.shape);
}

/** True for an input with its data type and shape, as opposed to bare data. */
export function isDescribed(input: object | string | number | bigint | boolean): input is TensorInput {
  return (
    typeof input === "object" &&
    "data" in input &&
    !isNdArray(input) &&
    !ArrayBuffer.isView(input) &&
    !Array.isArray(input)
  );
}

function withShape(what: string, tensor: Tensor, shape: Shape | undefined): Tensor {
  if (shape === undefined || shape.includes(-1)) return tensor;
  if (elementCount(shape) === elementCount(tensor.shape)) return tensor.reshaped(shape);
  throw invalid(
    `${what}: expected data for shape ${shapeToString(shape)}, got shape ${shapeToString(tensor.shape)}`,
  );
}

/** The data type that follows from a value. Numbers could have any. */
function datatypeOf(value: unknown): DataType | undefined {
  if (isNdArray(value)) return datatypeOf(value.data);
  if (ArrayBuffer.isView(value)) return datatypeOfArray(value);
  // A list of byte arrays holds elements of BYTES.
  if (isRows(value) && !(value[0] instanceof Uint8Array)) return datatypeOf(value[0]);
  let leaf = value;
  while (Array.isArray(leaf)) leaf = leaf[0];
  if (leaf !== value && typeof leaf === "object" && leaf !== null) return "BYTES";
  if (typeof leaf === "boolean") return "BOOL";
  if (typeof leaf === "bigint") return "INT64";
  return typeof leaf === "string" || leaf instanceof Uint8Array ? "BYTES" : undefined;
}

function isRows(value: unknown): value is readonly unknown[] {
  return Array.isArray(value) && ArrayBuffer.isView(value[0]);
}

function invalid(message: string): TritonError {
  return new TritonError("INVALID_ARG", message, { reason: "INVALID_INPUT" });
}
