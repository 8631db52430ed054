import { type ReadyModel, Tensor, TritonError } from "@tritonjs/core";
import { encodeText } from "../json/text.js";
import { MAX_CLASSIFICATION_ELEMENTS } from "../limits.js";

/** Names of the classes of an output, by index; undefined when it has none. */
export type LabelLookup = (model: ReadyModel, output: string) => readonly string[] | undefined;

const classifiable = new Set([
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

/**
 * The best `classes` of a tensor as `BYTES` elements `value:index` or `value:index:label`, largest value first; for
 * a batching model those of each row.
 *
 * @throws TritonError INVALID_ARG for data types without an order and for tensors that are too large.
 */
export function classify(
  tensor: Tensor,
  classes: number,
  batched: boolean,
  labels: readonly string[] | undefined,
): Tensor {
  const { datatype, shape, elements } = tensor;
  if (!classifiable.has(datatype) || Array.isArray(elements)) {
    throw new TritonError(
      "INVALID_ARG",
      `class result not available for output due to unsupported type '${datatype}'`,
    );
  }
  const rows = batched && shape.length > 0 ? shape[0]! : 1;
  const width = rows === 0 ? 0 : elements.length / rows;
  if (width > MAX_CLASSIFICATION_ELEMENTS) {
    throw new TritonError("INVALID_ARG", "classification output tensor too large");
  }
  const kept = Math.min(classes, width);
  const floating = datatype === "FP32" || datatype === "FP64";
  const results: Uint8Array[] = [];
  for (let row = 0; row < rows; row++) {
    const values = elements.subarray(row * width, (row + 1) * width);
    for (const index of best(values, kept)) {
      const value = values[index]!;
      const label = labels?.[index];
      const text = `${floating ? fixedText(value as number) : value}:${index}`;
      results.push(encodeText(label === undefined ? text : `${text}:${label}`));
    }
  }
  return Tensor.fromElements("BYTES", batched && shape.length > 0 ? [rows, kept] : [kept], results);
}

function best(values: ArrayLike<number | bigint>, count: number): Uint32Array {
  const order = Uint32Array.from({ length: values.length }, (_, index) => index);
  order.sort((a, b) => {
    const left = values[a]!;
    const right = values[b]!;
    return left > right ? -1 : left < right ? 1 : a - b;
  });
  return order.subarray(0, count);
}

const HALF = `5${"0".repeat(93)}`;

/** `std::to_string` of a double: six decimals, a half rounded to even, all digits before the point. */
function fixedText(value: number): string {
  if (Number.isNaN(value)) return "nan";
  if (!Number.isFinite(value)) return value > 0 ? "inf" : "-inf";
  if (Math.abs(value) >= 1e21) return `${BigInt(value)}.000000`;
  if (Object.is(value, -0)) return "-0.000000";
  const exact = value.toFixed(100);
  const truncated = exact.slice(0, -HALF.length);
  const evenHalf = exact.endsWith(HALF) && Number(truncated.at(-1)) % 2 === 0;
  return evenHalf ? truncated : value.toFixed(6);
}
