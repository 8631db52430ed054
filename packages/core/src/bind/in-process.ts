import type { Clock } from "../clock/clock.js";
import { isDecoupled } from "../config/model-config.js";
import { TritonError } from "../errors/triton-error.js";
import type { ModelVersion } from "../model/model-version.js";
import type { InferenceResponse } from "../request/inference-response.js";
import { type InputValues, type OutputArrays, toArrays, toTensors } from "./in-process-tensors.js";
import { type NestedOptions, sendInProcess } from "./send-in-process.js";
import { whenReady } from "./when-ready.js";

/** How the batch axis is meant: given with the values, or added for one sample and taken off its results. */
export type BatchAxis = "given" | "added";

/** One inference without a network: the same request, checks, queue and batcher as over a transport. */
export async function inferInProcess(
  model: ModelVersion,
  clock: Clock,
  values: InputValues,
  options: NestedOptions,
  axis: BatchAxis,
): Promise<OutputArrays> {
  assertUnary(model);
  const added = axis === "added" && model.config.maxBatchSize > 0;
  // Before anything is waited for: what the caller does to its arrays after this call changes nothing.
  const inputs = toTensors(model.config, values, added);
  if (model.state !== "READY") {
    await whenReady(model, clock, options);
    // Of an ensemble only its members tell.
    assertUnary(model);
  }
  const response = await new Promise<InferenceResponse>((resolve, reject) => {
    sendInProcess(model, clock, inputs, options, (outcome) => {
      if (outcome === undefined)
        reject(new TritonError("INTERNAL", `model '${model.name}' gave no response`));
      else if (TritonError.is(outcome)) reject(outcome);
      else resolve(outcome);
    });
  });
  return toArrays(response, added, model.config);
}

function assertUnary({ name, config }: ModelVersion): void {
  if (!isDecoupled(config)) return;
  throw new TritonError(
    "UNSUPPORTED",
    `model '${name}' answers with any number of responses (decoupled): use stream() instead of infer()`,
  );
}
