import type { TensorAnswer } from "../callable/model-caller.js";
import type { Clock } from "../clock/clock.js";
import { isDecoupled } from "../config/model-config.js";
import { TritonError } from "../errors/triton-error.js";
import type { ModelVersion } from "../model/model-version.js";
import type { InferenceRequest } from "../request/inference-request.js";
import type { Tensor } from "../tensor/tensor.js";
import { type NestedOptions, sendInProcess } from "./send-in-process.js";

/**
 * The answers to one request with tensors as they are, one at a time: a decoupled model makes no more than the reader
 * takes. Leaving the loop early gives the request up.
 *
 * @throws TritonError UNAVAILABLE for a model that is not ready, UNSUPPORTED for a decoupled one where that may not
 * be, and what the request is refused for.
 */
export async function* streamTensors(
  model: ModelVersion,
  clock: Clock,
  inputs: ReadonlyMap<string, Tensor>,
  options: NestedOptions & { readonly decoupled?: boolean | undefined },
): AsyncGenerator<TensorAnswer, void, void> {
  const { name, config } = model;
  if (model.state !== "READY") throw new TritonError("UNAVAILABLE", `model '${name}' is not ready`);
  if (options.decoupled === false && isDecoupled(config)) {
    throw new TritonError("UNSUPPORTED", `model '${name}' answers with any number of responses (decoupled)`);
  }
  const waiting: TensorAnswer[] = [];
  let wake = () => {};
  let sent: InferenceRequest | undefined;
  const request = sendInProcess(model, clock, inputs, options, (outcome, final) => {
    waiting.push({ outcome, final });
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
        yield next;
        if (next.final) return;
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
