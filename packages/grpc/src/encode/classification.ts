import { type DataType, elementCount, Tensor, TritonError } from "@tritonjs/core";
import { formatFixed } from "./format-fixed.js";

/** Elements that fit into one classification: beyond it, sorting would block the process. */
const MAX_ELEMENTS = 1_000_000;

const CLASSIFIABLE: ReadonlySet<DataType> = new Set<DataType>([
  ...(["UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64"] as const),
  ...(["FP32", "FP64"] as const),
]);

/** Finds the label of a class; undefined for none. */
export type ClassLabel = (index: number) => string | undefined;

/**
 * The tensor of classes that takes the place of an output: for each row the `count` largest elements as
 * `value:index[:label]`, largest first, equal ones in the order of their index.
 *
 * @param batched Whether the first axis is the batch axis.
 * @throws TritonError INVALID_ARG for data types without an order and for more than a million elements a row.
 */
export function classify(tensor: Tensor, count: number, batched: boolean, label: ClassLabel): Tensor {
  if (!CLASSIFIABLE.has(tensor.datatype)) {
    throw new TritonError(
      "INVALID_ARG",
      `class result not available for output due to unsupported type '${tensor.datatype}'`,
    );
  }
  const rows = batched ? (tensor.shape[0] ?? 0) : 0;
  const rowElements = elementCount(rows > 0 ? tensor.shape.slice(1) : tensor.shape);
  if (rowElements > MAX_ELEMENTS)
    throw new TritonError("INVALID_ARG", "classification output tensor too large");
  const elements = tensor.elements as ArrayLike<number | bigint>;
  const classes: Uint8Array[] = [];
  for (let row = 0; row < Math.max(1, rows); row++) {
    for (const entry of classifyRow(elements, row * rowElements, rowElements, count, label))
      classes.push(entry);
  }
  const classCount = Math.min(count, rowElements);
  return Tensor.fromElements("BYTES", rows > 0 ? [rows, classCount] : [classCount], classes);
}

function classifyRow(
  elements: ArrayLike<number | bigint>,
  start: number,
  length: number,
  count: number,
  label: ClassLabel,
): Uint8Array[] {
  const order = Uint32Array.from({ length }, (_, index) => index);
  order.sort((a, b) => descending(elements[start + a]!, elements[start + b]!) || a - b);
  return Array.from(order.subarray(0, count), (index) => {
    const value = elements[start + index]!;
    const text = `${isFloat(elements) ? formatFixed(value as number) : value}:${index}`;
    const name = label(index);
    return Buffer.from(name === undefined ? text : `${text}:${name}`);
  });
}

/** Not a number comes last. */
function descending(a: number | bigint, b: number | bigint): number {
  if (a > b) return -1;
  if (a < b) return 1;
  return Number(Number.isNaN(a)) - Number(Number.isNaN(b));
}

function isFloat(elements: unknown): boolean {
  return elements instanceof Float32Array || elements instanceof Float64Array;
}
