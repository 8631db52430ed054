import type { Clock } from "../clock/clock.js";
import { TritonError } from "../errors/triton-error.js";
import type { ModelVersion } from "../model/model-version.js";
import type { InferenceResponse } from "../request/inference-response.js";
import { type InputValues, type OutputArrays, toArrays, toTensors } from "./in-process-tensors.js";
import type { InferOptions } from "./infer-options.js";
import { sendInProcess, whenReady } from "./send-in-process.js";

/**
 * The responses to one request, one at a time: a decoupled model makes no more than the reader takes. Leaving the
 * loop early gives the request up, and so does an error.
 */
export async function* streamInProcess(
  model: ModelVersion,
  clock: Clock,
  values: InputValues,
  options: InferOptions,
): AsyncGenerator<OutputArrays, void, void> {
  if (model.state !== "READY") await whenReady(model);
  const waiting: InferenceResponse[] = [];
  let failure: TritonError | undefined;
  let over = false;
  let wake = () => {};
  const request = sendInProcess(
    model,
    clock,
    toTensors(model.config, values, false),
    options,
    (outcome, final) => {
      if (TritonError.is(outcome)) failure = outcome;
      else if (outcome !== undefined) waiting.push(outcome);
      over ||= final || failure !== undefined;
      request.pause();
      wake();
    },
  );
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
