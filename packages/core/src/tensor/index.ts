/*
 * Tensors and errors alone: `@tritonjs/core/tensor`, for clients. Nothing that this leads to imports a module of
 * Node.js or names one of its globals.
 */
export { TritonError } from "../errors/triton-error.js";
export { decodeBytes, encodeBytes } from "./bytes.js";
export {
  DATA_TYPES,
  type DataType,
  type ElementsOf,
  elementByteSize,
  fromConfigDataType,
  isDataType,
  toConfigDataType,
  typedArrayFor,
} from "./data-type.js";
export {
  type Nested,
  type ScalarOf,
  type TensorValue,
  tensorFromValue,
  type ValueTarget,
} from "./from-value.js";
export { bfloat16ToFloat32, float16ToFloat32, float32ToBfloat16, float32ToFloat16 } from "./half-float.js";
export { inputTensor, isDescribed, type TensorInput } from "./input-tensor.js";
export {
  type BatchAxis,
  type ModelSignature,
  modelInputs,
  type SignatureInput,
} from "./model-inputs.js";
export { contiguousElements, isNdArray, toNdArray } from "./nd-array.js";
export { elementCount, matchesShape, type Shape, shapeToString } from "./shape.js";
export { Tensor } from "./tensor.js";
