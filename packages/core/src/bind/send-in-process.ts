import type { Clock } from "../clock/clock.js";
import { TritonError } from "../errors/triton-error.js";
import type { ModelVersion } from "../model/model-version.js";
import { InferenceRequest, type ResponseHandler } from "../request/inference-request.js";
import type { Tensor } from "../tensor/tensor.js";
import { followSignal } from "./follow-signal.js";
import type { InferOptions } from "./infer-options.js";
import { cancelledError } from "./when-ready.js";

/** Queues a request of this process and ties it to its abort signal. Throws when the request is refused. */
export function sendInProcess(
  model: ModelVersion,
  clock: Clock,
  inputs: ReadonlyMap<string, Tensor>,
  options: InferOptions,
  onResponse: ResponseHandler,
): InferenceRequest {
  const { signal, timeoutMicroseconds } = options;
  checkParameters(model.name, options.parameters);
  if (signal?.aborted) throw cancelledError(signal);
  const request = new InferenceRequest({
    modelName: model.name,
    id: options.requestId,
    inputs,
    parameters: options.parameters,
    priority: options.priority,
    timeoutMicroseconds,
    deadline: timeoutMicroseconds ? clock.now() + timeoutMicroseconds / 1000 : undefined,
    onResponse: (outcome, final) => {
      if (final) unfollow?.();
      onResponse(outcome, final);
    },
  });
  const unfollow = signal && followSignal(signal, () => request.cancel(cancelledError(signal)));
  try {
    model.infer(request);
  } catch (error) {
    unfollow?.();
    throw error;
  }
  return request;
}

/** Parameters are checked here because TypeScript is not everywhere: a worker cannot be sent just anything. */
function checkParameters(model: string, parameters: InferOptions["parameters"] = {}): void {
  for (const [name, value] of Object.entries(parameters)) {
    if (!["string", "number", "bigint", "boolean"].includes(typeof value)) {
      throw new TritonError(
        "INVALID_ARG",
        `parameter '${name}' of a request to model '${model}' must be a string, number, bigint or boolean, ` +
          `got ${value === null ? "null" : typeof value}`,
      );
    }
  }
}
