import { Tensor } from "@tritonjs/protocol";
import { copyTensor } from "./copy.js";

/**
 * Makes a tensor of `rows` copies of the same row, in memory of its own. Without `rows` it copies the tensor itself.
 */
export function repeatRows(row: Tensor, rows: number | undefined): Tensor {
  if (rows === undefined) return copyTensor(row);
  const { datatype, elements } = row;
  const shape = [rows, ...row.shape];
  if (Array.isArray(elements)) {
    return Tensor.fromElements(datatype, shape, Array.from({ length: rows }, () => elements).flat());
  }
  const repeated = new (elements.constructor as Float32ArrayConstructor)(rows * elements.length);
  for (let i = 0; i < rows; i++) repeated.set(elements as Float32Array, i * elements.length);
  return Tensor.fromElements(datatype, shape, repeated);
}
