import { encodeBytes } from "./bytes.js";
import { typedArrayFor } from "./data-type.js";
import { Tensor } from "./tensor.js";

/** The same tensor over memory of its own. */
export function copyTensor(tensor: Tensor): Tensor {
  const { datatype, shape, elements } = tensor;
  if (datatype === "BYTES") return Tensor.fromBytes(datatype, shape, encodeBytes(elements as Uint8Array[]));
  // Not `slice`: that of a Buffer is a view.
  return Tensor.fromElements(datatype, shape, new (typedArrayFor(datatype))(elements as Uint8Array));
}
