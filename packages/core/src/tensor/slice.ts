import type { Elements, TypedArray } from "./data-type.js";
import { elementCount } from "./shape.js";
import { Tensor } from "./tensor.js";

/** Rows `[start, start + rows)` of a tensor's first axis, as a view. */
export function sliceRows(tensor: Tensor, start: number, rows: number): Tensor {
  if (start === 0 && rows === tensor.shape[0]) return tensor;
  const rowShape = tensor.shape.slice(1);
  const perRow = elementCount(rowShape);
  const elements = tensor.elements;
  const from = start * perRow;
  const to = (start + rows) * perRow;
  const part: Elements = Array.isArray(elements)
    ? elements.slice(from, to)
    : ((elements as Exclude<TypedArray, never>).subarray(from, to) as TypedArray);
  return Tensor.fromElements(tensor.datatype, [rows, ...rowShape], part);
}
