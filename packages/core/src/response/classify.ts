import { type DataType, elementCount, Tensor, TritonError, type TypedArray } from "@tritonjs/protocol";

import { fixedText } from "./fixed-text.js";

/** Largest number of elements of a row that is sorted: more would block the process. */
const MAX_ELEMENTS = 1_000_000;

/** Data types whose elements have an order, and a C++ text form that is simple to reproduce. */
const CLASSIFIABLE: ReadonlySet<DataType> = new Set<DataType>([
  "UINT8",
  "UINT16",
  "UINT32",
  "UINT64",
  "INT8",
  "INT16",
  "INT32",
  "INT64",
  "FP32",
  "FP64",
]);

const encoder = new TextEncoder();

/**
 * Computes the classification of an output. Each row becomes its `classes` largest elements, as `BYTES` elements
 * `value:index[:label]`. The largest is first, equal elements are ordered by index, and NaN is last.
 *
 * @param batched true if the first axis is the batch axis
 * @throws TritonError INVALID_ARG for data types without an order and for more than a million elements a row.
 */
export function classify(
  tensor: Tensor,
  classes: number,
  batched: boolean,
  labels: readonly string[] | undefined,
): Tensor {
  if (!CLASSIFIABLE.has(tensor.datatype)) {
    throw new TritonError(
      "INVALID_ARG",
      `class result not available for output due to unsupported type '${tensor.datatype}'`,
      { reason: "INVALID_REQUESTED_OUTPUT" },
    );
  }
  const rows = batched ? (tensor.shape[0] ?? 0) : 0;
  const width = elementCount(rows > 0 ? tensor.shape.slice(1) : tensor.shape);
  if (width > MAX_ELEMENTS)
    throw new TritonError("INVALID_ARG", "classification output tensor too large", {
      reason: "INVALID_REQUESTED_OUTPUT",
    });
  const elements = tensor.elements as TypedArray;
  const kept = Math.min(classes, width);
  const texts: Uint8Array[] = [];
  for (let row = 0; row < Math.max(1, rows); row++) {
    const values = elements.subarray(row * width, (row + 1) * width);
    for (const index of largest(values, kept)) texts.push(encoder.encode(classText(values, index, labels)));
  }
  return Tensor.fromElements("BYTES", rows > 0 ? [rows, kept] : [kept], texts);
}

function largest(values: TypedArray, count: number): Uint32Array {
  const order = Uint32Array.from({ length: values.length }, (_, index) => index);
  order.sort((a, b) => descending(values[a]!, values[b]!) || a - b);
  return order.subarray(0, count);
}

function descending(a: number | bigint, b: number | bigint): number {
  if (a > b) return -1;
  if (a < b) return 1;
  return Number(Number.isNaN(a)) - Number(Number.isNaN(b));
}

function classText(values: TypedArray, index: number, labels: readonly string[] | undefined): string {
  const value = values[index]!;
  const floating = values instanceof Float32Array || values instanceof Float64Array;
  const text = `${floating ? fixedText(value as number) : value}:${index}`;
  const label = labels?.[index];
  return label === undefined || label === "" ? text : `${text}:${label}`;
}
