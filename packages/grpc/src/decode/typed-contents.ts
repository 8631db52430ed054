import { ContentsError, type inference, typedElements } from "@tritonjs/grpc-messages";
import { type DataType, type Shape, Tensor } from "@tritonjs/protocol";
import { invalidArgument } from "./invalid-argument.js";

const NO_BYTES = new Uint8Array(0);

/**
 * Decodes typed contents; contents without a value make a tensor of no bytes.
 *
 * @param where `input tensor 'X' for model 'M'`, for messages.
 * @throws TritonError INVALID_ARG when the values are in a field of another data type, or in two fields.
 */
export function decodeTypedContents(
  contents: inference.InferTensorContents.$Properties,
  datatype: DataType,
  shape: Shape,
  where: string,
): Tensor {
  try {
    const elements = typedElements(contents, datatype, where);
    return elements === undefined
      ? Tensor.fromBytes(datatype, shape, NO_BYTES)
      : Tensor.fromElements(datatype, shape, elements);
  } catch (error) {
    throw error instanceof ContentsError ? invalidArgument(error.message, "INVALID_INPUT") : error;
  }
}
