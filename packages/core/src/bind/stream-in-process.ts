import type { Clock } from "../clock/clock.js";
import { TritonError } from "../errors/triton-error.js";
import type { ModelVersion } from "../model/model-version.js";
import type { InferenceRequest } from "../request/inference-request.js";
import type { InferenceResponse } from "../request/inference-response.js";
import type { Tensor } from "../tensor/tensor.js";
import { type InputValues, type OutputArrays, toArrays, toTensors } from "./in-process-tensors.js";
import { type NestedOptions, sendInProcess } from "./send-in-process.js";
import { whenReady } from "./when-ready.js";

/**
 * The responses to one request, one at a time: a decoupled model makes no more than the reader takes. Leaving the
 * loop early gives the request up, and so does an error.
 *
 * @throws TritonError INVALID_ARG at once for inputs that are no tensors of the model.
 */
export function streamInProcess(
  model: ModelVersion,
  clock: Clock,
  values: InputValues,
  options: NestedOptions,
): AsyncGenerator<OutputArrays, void, void> {
  // Before anything is waited for: what the caller does to its arrays after this call changes nothing.
  return responses(model, clock, toTensors(model.config, values, false), options);
}

async function* responses(
  model: ModelVersion,
  clock: Clock,
  inputs: ReadonlyMap<string, Tensor>,
  options: NestedOptions,
): AsyncGenerator<OutputArrays, void, void> {
  if (model.state !== "READY") await whenReady(model, clock, options);
  const waiting: InferenceResponse[] = [];
  let failure: TritonError | undefined;
  let over = false;
  let wake = () => {};
  let sent: InferenceRequest | undefined;
  const request = sendInProcess(model, clock, inputs, options, (outcome, final) => {
    if (TritonError.is(outcome)) failure = outcome;
    else if (outcome !== undefined) waiting.push(outcome);
    over ||= final || failure !== undefined;
    sent?.pause();
    wake();
  });
  sent = request;
  // A callback may have answered before it let go of the thread.
  if (waiting.length > 0) request.pause();
  try {
    for (;;) {
      const next = waiting.shift();
      if (next !== undefined) {
        yield toArrays(next, false);
      } else if (over) {
        if (failure !== undefined) throw failure;
        return;
      } else {
        await new Promise<void>((resolve) => {
          wake = resolve;
          request.resume();
        });
      }
    }
  } finally {
    request.cancel();
  }
}
