import type { Clock } from "../clock/clock.js";
import { TritonError } from "../errors/triton-error.js";
import type { ModelVersion } from "../model/model-version.js";
import { InferenceRequest, type ResponseHandler } from "../request/inference-request.js";
import type { Tensor } from "../tensor/tensor.js";
import { followSignal } from "./follow-signal.js";
import type { InferOptions } from "./infer-options.js";

/** Waits for a model that is loading. Throws UNAVAILABLE for one that is not served. */
export async function whenReady(model: ModelVersion): Promise<void> {
  if (model.state === "LOADING") await model.ready;
  if (model.state === "UNAVAILABLE") {
    throw new TritonError(
      "UNAVAILABLE",
      `model '${model.name}' version ${model.version} is not ready: ${model.reason || model.state.toLowerCase()}`,
    );
  }
}

/** Queues a request of this process and ties it to its abort signal. Throws when the request is refused. */
export function sendInProcess(
  model: ModelVersion,
  clock: Clock,
  inputs: ReadonlyMap<string, Tensor>,
  options: InferOptions,
  onResponse: ResponseHandler,
): InferenceRequest {
  const { signal, timeoutMicroseconds } = options;
  if (signal?.aborted) throw cancelled(signal.reason);
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
  const unfollow = signal && followSignal(signal, () => request.cancel(cancelled(signal.reason)));
  try {
    model.infer(request);
  } catch (error) {
    unfollow?.();
    throw error;
  }
  return request;
}

function cancelled(reason: unknown): TritonError {
  return new TritonError("CANCELLED", "the request was cancelled", { cause: reason });
}
