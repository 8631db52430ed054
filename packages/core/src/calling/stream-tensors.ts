import { isDecoupled, type Tensor, TritonError } from "@tritonjs/protocol";
import type { TensorAnswer, TensorCallOptions } from "../callable/model-caller.js";
import type { Clock } from "../clock/clock.js";

import type { ModelVersion } from "../model/model-version.js";

import { AnswerReader } from "./answer-reader.js";
import type { NestedOptions } from "./send-in-process.js";

/**
 * Streams the answers to one request, with tensors as they are. Back-pressure holds: a decoupled model makes no more
 * answers than the reader takes. Leaving the loop early cancels the request.
 *
 * @throws TritonError UNAVAILABLE for a model that is not ready, UNSUPPORTED for a decoupled one where that is not
 * allowed, and errors with which the request is refused.
 */
export async function* streamTensors(
  model: ModelVersion,
  clock: Clock,
  inputs: ReadonlyMap<string, Tensor>,
  options: NestedOptions & Pick<TensorCallOptions, "decoupled" | "stopSignal">,
): AsyncGenerator<TensorAnswer, void, void> {
  const { name, config } = model;
  if (model.state !== "READY")
    throw new TritonError("UNAVAILABLE", `model '${name}' is not ready`, { reason: "MODEL_NOT_READY" });
  if (options.decoupled === false && isDecoupled(config)) {
    throw new TritonError(
      "UNSUPPORTED",
      `model '${name}' is decoupled, so it has no single response: use a streaming call`,
      {
        reason: "DECOUPLED_MODEL",
      },
    );
  }
  const answers = new AnswerReader(model, clock, inputs, options);
  const { stopSignal } = options;
  stopSignal?.addEventListener("abort", () => answers.askToStop(), { once: true });
  if (stopSignal?.aborted) answers.askToStop();
  try {
    for (;;) {
      const answer = await answers.next();
      yield answer;
      if (answer.final) return;
    }
  } finally {
    answers.leave();
  }
}
