import { elementCount, type Tensor } from "@tritonjs/protocol";
import { concatRows } from "./concat.js";

/** The elements of tensors of one data type one after another, in a tensor of one dimension; their shapes may differ. */
export function concatFlat(tensors: readonly Tensor[]): Tensor {
  const flat = tensors.map((tensor) => tensor.reshaped([elementCount(tensor.shape)]));
  return flat.length === 1 ? flat[0]! : concatRows(flat);
}
