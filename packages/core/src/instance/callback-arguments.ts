import type { Tensors } from "../batch/merge-inputs.js";
import { type InferContext, type InstanceInfo, requestInfo } from "../callable/infer-context.js";
import { toNdArray } from "../tensor/nd-array.js";
import type { ExecutableRequest, Execution } from "./executor.js";

/** Tensors as a callback sees them: ndarrays by name. */
export function toArrays(inputs: Tensors): Record<never, never> {
  const arrays: Record<string, unknown> = {};
  for (const [name, tensor] of inputs) arrays[name] = toNdArray(tensor);
  return arrays;
}

/** A request as a plain callback sees it. */
export function toInferRequest(request: ExecutableRequest) {
  return {
    ...requestInfo(request),
    inputs: toArrays(request.inputs),
    runInContext: <T>(fn: () => T) => request.runInContext(fn),
    get signal() {
      return request.signal;
    },
  };
}

/** What a callback is told besides its tensors. */
export function contextOf(info: InstanceInfo, execution: Execution): InferContext {
  return {
    ...info,
    requests: execution.requests,
    infer: (...call) => execution.models.infer(...call),
    stream: (...call) => execution.models.stream(...call),
    get signal() {
      return execution.signal;
    },
  };
}
