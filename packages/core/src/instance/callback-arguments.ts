import { toNdArray } from "@tritonjs/protocol";
import type { Tensors } from "../batch/merge-inputs.js";
import type { InferContext, InstanceInfo } from "../callable/infer-context.js";
import { CallbackContext } from "./callback-context.js";
import type { CallbackExecution, ExecutableRequest } from "./executor.js";
import { toRequestInfo } from "./request-view.js";
import { withSignal } from "./signal-source.js";

/** Converts tensors to callback arguments: ndarrays by name. */
export function toCallbackArrays(inputs: Tensors, modelName: string): Record<never, never> {
  const arrays: Record<string, unknown> = {};
  for (const [name, tensor] of inputs) arrays[name] = toNdArray(tensor, "input", name, modelName);
  return arrays;
}

/** Converts a request to the argument of a plain callback. */
export function toInferRequest(request: ExecutableRequest, modelName: string) {
  const inputs = toCallbackArrays(request.inputs, modelName);
  return withSignal({ ...toRequestInfo(request), inputs }, request);
}

/** Context of a callback: its arguments besides the tensors. */
export function contextOf(info: InstanceInfo, execution: CallbackExecution): InferContext {
  return new CallbackContext(info, execution);
}
