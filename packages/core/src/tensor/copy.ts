import { encodeBytes, type Shape, Tensor } from "@tritonjs/protocol";

/** Copies a tensor to memory of its own. `shape`, if given, must have as many elements. */
export function copyTensor(tensor: Tensor, shape: Shape = tensor.shape): Tensor {
  const { datatype } = tensor;
  return datatype === "BYTES"
    ? Tensor.fromBytes(datatype, shape, encodeBytes(tensor.elements as Uint8Array[]))
    : Tensor.fromElements(datatype, shape, tensor.copyElements());
}
