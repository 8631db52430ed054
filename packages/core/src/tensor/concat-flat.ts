import { elementCount, type Tensor } from "@tritonjs/protocol";
import { concatRows } from "./concat.js";

/** Joins the elements of tensors of one data type in a tensor of one dimension. Their shapes may differ. */
export function concatFlat(tensors: readonly Tensor[]): Tensor {
  const flat = tensors.map((tensor) => tensor.reshaped([elementCount(tensor.shape)]));
  return flat.length === 1 ? flat[0]! : concatRows(flat);
}
