import { type Tensor, TritonError } from "@tritonjs/protocol";
import type { Clock } from "../clock/clock.js";
import type { ModelVersion } from "../model/model-version.js";

import { AnswerReader } from "./answer-reader.js";
import { type InputValues, type OutputArrays, toArrays, toTensors } from "./in-process-tensors.js";
import { awaitReady } from "./model-readiness.js";
import type { NestedOptions } from "./send-in-process.js";

/**
 * Streams the responses to one request. Back-pressure holds: a decoupled model makes no more responses than the reader
 * takes. Leaving the loop early, or an error, cancels the request.
 *
 * @throws TritonError INVALID_ARG at once for inputs that cannot become tensors of the model.
 */
export function streamInProcess(
  model: ModelVersion,
  clock: Clock,
  values: InputValues,
  options: NestedOptions,
): AsyncGenerator<OutputArrays, void, void> {
  // Done before the first wait, so that later changes of the caller to its arrays have no effect.
  return responses(model, clock, toTensors(model.config, values, false), options);
}

async function* responses(
  model: ModelVersion,
  clock: Clock,
  inputs: ReadonlyMap<string, Tensor>,
  options: NestedOptions,
): AsyncGenerator<OutputArrays, void, void> {
  if (model.state !== "READY") await awaitReady(model, clock, options);
  const answers = new AnswerReader(model, clock, inputs, options);
  try {
    for (;;) {
      const { outcome, final } = await answers.next();
      if (TritonError.is(outcome)) throw outcome;
      if (outcome !== undefined) yield toArrays(outcome, false, model.config);
      if (final) return;
    }
  } finally {
    answers.leave();
  }
}
