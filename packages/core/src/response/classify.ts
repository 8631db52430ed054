import { type DataType, elementCount, Tensor, TritonError, type TypedArray } from "@tritonjs/protocol";

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

/**
 * Formats a number like C's `%f`: six decimals, an exact half rounded to even, all digits before the point.
 *
 * @example `fixedText(0.1)` is `0.100000`, `fixedText(1e21)` is `1000000000000000000000.000000`
 */
function fixedText(value: number): string {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "nan" : value < 0 ? "-inf" : "inf";
  if (value < 0 || Object.is(value, -0)) return `-${fixedText(-value)}`;
  if (value >= 1e21) return `${BigInt(value)}.000000`;
  // Seven decimals show a half exactly if the value is a multiple of 2^-7: no other value can end after the seventh.
  const seven = value.toFixed(7);
  const isHalf = Number.isInteger(value * 128) && seven.endsWith("5");
  const lastDigitIsEven = Number(seven.at(-2)) % 2 === 0;
  return isHalf && lastDigitIsEven ? seven.slice(0, -1) : value.toFixed(6);
}
