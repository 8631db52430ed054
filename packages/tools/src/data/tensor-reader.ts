import {
  type DataType,
  decodeBytes,
  elementByteSize,
  elementCount,
  scanBytes,
  shapeToString,
  tensorFromValue,
} from "@tritonjs/protocol";
import { checkShape, type GivenShapes, knownShape } from "./input-shapes.js";
import { invalidOption } from "./invalid-option.js";
import type { StepTensor } from "./steps.js";
import type { TestedInput } from "./tested-model.js";

/** A tensor in a JSON file: its elements or its bytes, with a shape or without. */
interface WrittenTensor {
  readonly content?: unknown;
  readonly b64?: unknown;
  readonly shape?: unknown;
}

/**
 * Reads an input from a JSON value: a list of elements, `{"b64": …}`, or `{"content": …, "shape": […]}`.
 *
 * @param where file and entry, for messages
 * @throws TritonError INVALID_ARG for a value that does not fit the input.
 */
export function readInput(
  input: TestedInput,
  value: unknown,
  shapes: GivenShapes,
  where: string,
): StepTensor {
  const what = `${where}: input '${input.name}'`;
  const { content, shape } = partsOf(value, what);
  if (shape !== undefined) checkShape(input, shape, where);
  const known = shape ?? knownShape(input, shapes);
  const bytes = contentBytes(input.datatype, content, known ?? input.dims, what);
  return { shape: known ?? deduced(input, bytes, what), bytes };
}

/** Reads an output that responses must have. It has any shape. */
export function readOutput(datatype: DataType, value: unknown, what: string): Uint8Array {
  const { content, shape } = partsOf(value, what);
  return contentBytes(datatype, content, shape ?? [-1], what);
}

/** Checks the bytes of a tensor, from base64 text or a file. */
export function checkedBytes(
  datatype: DataType,
  bytes: Uint8Array,
  shape: readonly number[],
  what: string,
): Uint8Array {
  const open = shape.includes(-1);
  if (datatype === "BYTES") {
    const { elements, truncated, lengthBytesLeft } = scanBytes(bytes, Number.MAX_SAFE_INTEGER);
    if (truncated !== undefined || lengthBytesLeft !== undefined)
      throw invalidOption(
        `${what}: expected elements, each after its length in 4 bytes, got ${bytes.length} other bytes`,
      );
    if (!open && elements !== elementCount(shape))
      throw invalidOption(
        `${what}: expected ${elementCount(shape)} elements for shape ${shapeToString(shape)}, got ${elements}`,
      );
    return bytes;
  }
  const size = elementByteSize(datatype);
  const expected = open ? undefined : elementCount(shape) * size;
  if (expected === undefined ? bytes.length % size !== 0 : bytes.length !== expected)
    throw invalidOption(
      `${what}: expected ${expected ?? `a multiple of ${size}`} bytes for ${datatype} of shape ${shapeToString(shape)}, ` +
        `got ${bytes.length}`,
    );
  return bytes;
}

/** The shape of an input with one open dimension, from the number of its elements. */
export function deduced({ datatype, dims }: TestedInput, bytes: Uint8Array, what: string): readonly number[] {
  const count = datatype === "BYTES" ? decodeBytes(bytes).length : bytes.length / elementByteSize(datatype);
  const known = dims.filter((dim) => dim !== -1).reduce((product, dim) => product * dim, 1);
  if (dims.filter((dim) => dim === -1).length === 1 && known > 0 && count % known === 0)
    return dims.map((dim) => (dim === -1 ? count / known : dim));
  throw invalidOption(
    `${what}: expected a shape for the variable shape ${shapeToString(dims)}, by --shape or the member "shape", got none`,
  );
}

function partsOf(
  value: unknown,
  what: string,
): { readonly content: unknown; readonly shape?: readonly number[] } {
  if (Array.isArray(value)) return { content: value };
  if (typeof value !== "object" || value === null)
    throw invalidOption(
      `${what}: expected a list of elements, or an object with "content" or "b64", got ${textOf(value)}`,
    );
  const { content, b64, shape } = value as WrittenTensor;
  if (b64 !== undefined) return { content: { b64 }, shape: shapeOf(shape, what) };
  if (content === undefined)
    throw invalidOption(`${what}: expected a member "content" or "b64", got ${textOf(Object.keys(value))}`);
  return { content, shape: shapeOf(shape, what) };
}

function shapeOf(shape: unknown, what: string): readonly number[] | undefined {
  if (shape === undefined) return undefined;
  if (Array.isArray(shape) && shape.every((dim) => Number.isSafeInteger(dim) && dim >= 0))
    return shape as number[];
  throw invalidOption(`${what}: "shape": expected a list of whole numbers, got ${textOf(shape)}`);
}

function contentBytes(
  datatype: DataType,
  content: unknown,
  shape: readonly number[],
  what: string,
): Uint8Array {
  if (Array.isArray(content)) {
    // Elements are in row-major order, whether nested or not.
    const { bytes } = tensorFromValue(content.flat(Number.POSITIVE_INFINITY), {
      what,
      datatype,
      shape: [-1],
    });
    return checkedBytes(datatype, bytes, shape, what);
  }
  const { b64 } = (content ?? {}) as WrittenTensor;
  if (typeof b64 !== "string")
    throw invalidOption(
      `${what}: expected a list of elements, or base64 text as "b64", got ${textOf(content)}`,
    );
  const bytes = Buffer.from(b64, "base64");
  if (bytes.toString("base64").replace(/=+$/, "") !== b64.replace(/\s/g, "").replace(/=+$/, ""))
    throw invalidOption(`${what}: "b64": expected base64 text, got ${textOf(b64)}`);
  return checkedBytes(datatype, new Uint8Array(bytes), shape, what);
}

/** A value as text for messages. */
export function textOf(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}
