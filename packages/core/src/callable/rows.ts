import { contiguousElements, type Elements, ndArrayLike, type TypedArray } from "@tritonjs/protocol";
import type { NdArray } from "ndarray";

/** ndarrays by name, each with the batch as its first axis. */
export type InputArrays = Readonly<Record<string, NdArray>>;

type List = unknown[] | TypedArray;

/** One row of an array, as a view. */
export function rowOf(values: NdArray, row: number): NdArray {
  return values.pick(row, ...values.shape.slice(1).map(() => null));
}

/** True when all rows of an array hold the same elements. */
export function sameRows(values: NdArray): boolean {
  const { elements, perRow } = flat(values);
  for (let i = perRow; i < elements.length; i++) {
    if (!sameElement(elements[i], elements[i - perRow])) return false;
  }
  return true;
}

function sameElement(a: unknown, b: unknown): boolean {
  if (a instanceof Uint8Array && b instanceof Uint8Array) return Buffer.compare(a, b) === 0;
  return a === b || (Number.isNaN(a) && Number.isNaN(b));
}

/** Key of a row: rows of equal bytes have the same key, and different rows have different keys. */
export function rowKey(values: NdArray, row: number): string {
  const { elements, perRow } = flat(values);
  const part = elements.slice(row * perRow, (row + 1) * perRow);
  if (!Array.isArray(part)) return hex(new Uint8Array(part.buffer, part.byteOffset, part.byteLength));
  return part.map((element) => hex(element as Uint8Array)).join();
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("hex");
}

/** Copies some rows of an array into a new array, in the given order. */
export function takeRows(values: NdArray, rows: readonly number[]): NdArray {
  const { elements, perRow } = flat(values);
  const taken = emptyLike(elements, rows.length * perRow);
  for (const [i, row] of rows.entries()) copy(taken, i * perRow, elements, row * perRow, perRow);
  return arrayLike(values, taken, [rows.length, ...values.shape.slice(1)]);
}

/** Merges arrays of equal row shapes: row `i` of `parts[p]` becomes row `rows[p][i]`. */
export function mergeRows(parts: readonly NdArray[], rows: readonly (readonly number[])[]): NdArray {
  const first = flat(parts[0]!);
  const count = rows.reduce((sum, part) => sum + part.length, 0);
  const merged = emptyLike(first.elements, count * first.perRow);
  for (const [p, part] of parts.entries()) {
    const { elements, perRow } = flat(part);
    for (const [i, row] of rows[p]!.entries()) copy(merged, row * perRow, elements, i * perRow, perRow);
  }
  return arrayLike(parts[0]!, merged, [count, ...parts[0]!.shape.slice(1)]);
}

function arrayLike(values: NdArray, elements: List, shape: readonly number[]): NdArray {
  return ndArrayLike(values as NdArray<Elements>, elements as Elements, shape) as NdArray;
}

/** The elements of an array in row-major order, and the number of elements per row. */
function flat(values: NdArray): { readonly elements: List; readonly perRow: number } {
  const perRow = values.shape.slice(1).reduce((product, dim) => product * dim, 1);
  return { elements: contiguousElements(values as NdArray<Elements>), perRow };
}

/** Makes an array of the same kind. A subclass of Uint8Array, such as Buffer, may not support `new`. */
export function emptyLike(elements: object, length: number): List {
  if (Array.isArray(elements)) return new Array<unknown>(length);
  if (elements instanceof Uint8Array) return new Uint8Array(length);
  return new (elements.constructor as Float32ArrayConstructor)(length);
}

function copy(to: { [index: number]: unknown }, at: number, from: List, start: number, count: number): void {
  for (let i = 0; i < count; i++) to[at + i] = from[start + i];
}
