import {
  type DataType,
  type Elements,
  floatReader,
  floatWriter,
  isDataType,
  typedArrayFor,
} from "./data-types.js";
import { elementCount, type Shape, sameShape, shapeToString, Tensor } from "./tensor.js";
import { TritonError } from "./triton-error.js";

/*
 * Tensors in files that people read and compare: recordings and snapshots. Every element survives: 64-bit integers are
 * text, NaN and infinities are their names, bytes that are not UTF-8 and long tensors are base64.
 */

/** A tensor as JSON. */
export interface PlainTensor {
  readonly datatype: DataType;
  readonly shape: Shape;
  /** The elements in row-major order. */
  readonly data?: readonly (number | string | boolean)[];
  /** The bytes of the tensor as base64, instead of `data`. */
  readonly base64?: string;
}

/** More elements than this are written as base64. */
const MOST_LISTED = 1_024;

/** Writes a tensor as JSON. */
export function plainTensor(tensor: Tensor): PlainTensor {
  const { datatype, shape, elements } = tensor;
  const start = { datatype, shape: [...shape] };
  const data = elements.length > MOST_LISTED ? undefined : listOf(datatype, elements);
  return data === undefined ? { ...start, base64: toBase64(tensor.bytes) } : { ...start, data };
}

/** The elements as JSON; undefined for bytes that are not UTF-8. */
function listOf(datatype: DataType, elements: Elements): (number | string | boolean)[] | undefined {
  if (Array.isArray(elements)) {
    const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
    try {
      return elements.map((bytes) => decoder.decode(bytes));
    } catch {
      return undefined;
    }
  }
  const read = floatReader(datatype);
  return Array.from(elements as ArrayLike<number | bigint>, (element) => {
    if (datatype === "BOOL") return element !== 0;
    if (typeof element === "bigint") return String(element);
    const value = read === undefined ? element : read(element);
    return Number.isFinite(value) && !Object.is(value, -0)
      ? value
      : Object.is(value, -0)
        ? "-0"
        : String(value);
  });
}

/**
 * Reads a tensor that `plainTensor` wrote, or that a person wrote in its form.
 *
 * @param what the tensor in error texts
 * @throws TritonError INVALID_ARG for anything else
 */
export function tensorOfPlain(plain: PlainTensor, what: string): Tensor {
  const { datatype, shape, data, base64 } = (plain ?? {}) as PlainTensor;
  if (!isDataType(datatype) || !Array.isArray(shape))
    throw invalid(`${what}: expected a datatype and a shape`);
  if (typeof base64 === "string") return Tensor.fromBytes(datatype, shape, fromBase64(base64));
  if (!Array.isArray(data)) throw invalid(`${what}: expected 'data' or 'base64'`);
  const count = elementCount(shape);
  if (data.length !== count) {
    throw invalid(
      `${what}: expected ${count} elements for shape ${shapeToString(shape)}, got ${data.length}`,
    );
  }
  if (datatype === "BYTES") {
    const encoder = new TextEncoder();
    return Tensor.fromElements(
      datatype,
      shape,
      data.map((text) => encoder.encode(String(text))),
    );
  }
  const elements = new (typedArrayFor(datatype))(count);
  const write = floatWriter(datatype);
  for (const [i, value] of data.entries()) {
    if (typeof elements[0] === "bigint") elements[i] = BigInt(value as string);
    else elements[i] = write === undefined ? Number(value) : write(Number(value));
  }
  return Tensor.fromElements(datatype, shape, elements);
}

function invalid(message: string): TritonError {
  return new TritonError("INVALID_ARG", message, { reason: "INVALID_INPUT" });
}

/** Differences that count as none: numbers may differ by `absolute + relative * |expected|`. */
export interface Tolerance {
  /** @default 0 */
  readonly absolute?: number;
  /** @default 0 */
  readonly relative?: number;
}

/**
 * Describes how a tensor differs from the expected one: its type, its shape, or its elements, with the place of the first
 * and of the largest difference. NaN equals NaN. Undefined if it does not differ.
 */
export function tensorDifference(
  actual: Tensor,
  expected: Tensor,
  { absolute = 0, relative = 0 }: Tolerance = {},
): string | undefined {
  if (actual.datatype !== expected.datatype) {
    return `expected data type ${expected.datatype}, got ${actual.datatype}`;
  }
  if (!sameShape(actual.shape, expected.shape)) {
    return `expected shape ${shapeToString(expected.shape)}, got ${shapeToString(actual.shape)}`;
  }
  const read = floatReader(expected.datatype);
  const isText = expected.datatype === "BYTES";
  let count = 0;
  let first = "";
  let largest = 0;
  for (let i = 0; i < expected.elements.length; i++) {
    const [a, b] = [actual.elements[i]!, expected.elements[i]!];
    if (a === b || (isText && sameBytes(a as Uint8Array, b as Uint8Array))) continue;
    if (!isText) {
      const [x, y] = read === undefined ? [Number(a), Number(b)] : [read(a as number), read(b as number)];
      if (Number.isNaN(x) && Number.isNaN(y)) continue;
      const distance =
        typeof a === "bigint"
          ? Number(a > (b as bigint) ? a - (b as bigint) : (b as bigint) - a)
          : Math.abs(x - y);
      if (x === y && typeof a !== "bigint") continue;
      if (distance <= absolute + relative * Math.abs(y)) continue;
      largest = Math.max(largest, Number.isNaN(distance) ? Number.POSITIVE_INFINITY : distance);
    }
    if (count++ === 0)
      first = `at [${place(i, expected.shape)}] expected ${shown(b, read)}, got ${shown(a, read)}`;
  }
  if (count === 0) return undefined;
  if (count === 1) return first;
  const most = largest > 0 ? `, by at most ${Number(largest.toPrecision(3))}` : "";
  return `${first}; ${count} of ${expected.elements.length} elements differ${most}`;
}

function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, i) => byte === b[i]);
}

function place(index: number, shape: Shape): string {
  const at: number[] = [];
  let rest = index;
  for (const dim of shape.toReversed()) {
    at.unshift(rest % dim);
    rest = Math.floor(rest / dim);
  }
  return at.join(", ");
}

function shown(
  element: number | bigint | Uint8Array,
  read: ((element: number) => number) | undefined,
): string {
  if (typeof element === "bigint") return String(element);
  if (typeof element === "number") return String(read === undefined ? element : read(element));
  const text = new TextDecoder().decode(element.subarray(0, 80));
  return `'${text}'${element.length > 80 ? "..." : ""}`;
}

/** Most characters for one call of `String.fromCharCode`. */
const SLICE = 0x8000;

/** Bytes as base64, without Node.js. */
export function toBase64(bytes: Uint8Array): string {
  let binary = "";
  for (let at = 0; at < bytes.length; at += SLICE) {
    binary += String.fromCharCode(...bytes.subarray(at, at + SLICE));
  }
  return btoa(binary);
}

function fromBase64(text: string): Uint8Array {
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}
