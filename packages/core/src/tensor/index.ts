/*
 * `@tritonjs/core/tensor`: tensors, errors, and other parts that clients share with the library. Nothing that this leads to imports a
 * module of Node.js or names one of its globals.
 */
export { cancelled, unlessAborted } from "../async/cancelled.js";
export { ConcurrencyGate } from "../async/concurrency-gate.js";
export { onAbort } from "../async/on-abort.js";
export { isTimeout, noAnswerError, TIMEOUT_TEXT } from "../errors/timeout-error.js";
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
export { doubleText, numberText } from "./number-text.js";
export { isReservedParameter } from "./reserved-parameter.js";
export { elementCount, matchesShape, type Shape, shapeToString } from "./shape.js";
export { Tensor } from "./tensor.js";
