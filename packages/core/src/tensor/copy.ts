import { encodeBytes, type Shape, Tensor, typedArrayFor } from "@tritonjs/protocol";

/** The same tensor over memory of its own, with another shape of as many elements where one is given. */
export function copyTensor(tensor: Tensor, shape: Shape = tensor.shape): Tensor {
  const { datatype, elements } = tensor;
  if (datatype === "BYTES") return Tensor.fromBytes(datatype, shape, encodeBytes(elements as Uint8Array[]));
  // Not `slice`: that of a Buffer is a view.
  return Tensor.fromElements(datatype, shape, new (typedArrayFor(datatype))(elements as Uint8Array));
}
