/* `@tritonjs/core/web`: the serving core without Node, for pages, web workers and workers at the edge. */
export { BFloat16Bits, Float16Bits, Tensor, TritonError } from "@tritonjs/protocol";
export { divideOutputs, joinInputs } from "./batch/batch-tensors.js";
export { batch, fillOptionals, groupByKeys, sample } from "./callback/batch-decorators.js";
export { stepwise } from "./callback/infer-func.js";
export { WebTriton, type WebTritonOptions } from "./web/web-triton.js";
