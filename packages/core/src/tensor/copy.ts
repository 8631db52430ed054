import { encodeBytes, type Shape, Tensor, typedArrayFor } from "@tritonjs/protocol";

/** Copies a tensor to memory of its own. `shape`, if given, must have as many elements. */
export function copyTensor(tensor: Tensor, shape: Shape = tensor.shape): Tensor {
  const { datatype, elements } = tensor;
  if (datatype === "BYTES") return Tensor.fromBytes(datatype, shape, encodeBytes(elements as Uint8Array[]));
  // Not `slice`, because that of a Buffer returns a view.
  return Tensor.fromElements(datatype, shape, new (typedArrayFor(datatype))(elements as Uint8Array));
}
