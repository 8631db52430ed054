import { isDecoupled, type Tensor, TritonError } from "@tritonjs/protocol";
import { namingModel } from "../callable/callback-error.js";
import type { Clock } from "../clock/clock.js";

import type { ModelVersion } from "../model/model-version.js";
import type { ResponseHandler } from "../request/inference-request-init.js";

import { inCallersWords } from "./faults-in-process.js";
import {
  type CallBatchAxis,
  type InputValues,
  type OutputArrays,
  toArrays,
  toTensors,
} from "./in-process-tensors.js";
import { awaitReady } from "./model-readiness.js";
import { type NestedOptions, sendInProcess } from "./send-in-process.js";

/**
 * Runs one inference without a network, through the same request, checks, queue and batcher as over a transport. For a
 * model that is ready it takes one promise, and keeps nothing but the request and a handler.
 */
export function inferInProcess(
  model: ModelVersion,
  clock: Clock,
  values: InputValues,
  options: NestedOptions,
  axis: CallBatchAxis,
): Promise<OutputArrays> {
  return new Promise((resolve, reject) => {
    assertUnary(model);
    const added = axis === "added" && model.config.maxBatchSize > 0;
    // Done before the first wait, so that later changes of the caller to its arrays have no effect.
    const inputs = toTensors(model.config, values, added);
    const onResponse = settling(model, added, resolve, reject);
    if (model.state === "READY") sendNow(model, clock, inputs, options, onResponse, axis);
    else sendWhenReady(model, clock, inputs, options, onResponse, axis).catch(reject);
  });
}

async function sendWhenReady(
  model: ModelVersion,
  clock: Clock,
  inputs: ReadonlyMap<string, Tensor>,
  options: NestedOptions,
  onResponse: ResponseHandler,
  axis: CallBatchAxis,
): Promise<void> {
  await awaitReady(model, clock, options);
  // Whether an ensemble is decoupled is known only from its members.
  assertUnary(model);
  sendNow(model, clock, inputs, options, onResponse, axis);
}

/** Sends a request, and words the error with which it is refused for its caller. */
function sendNow(
  model: ModelVersion,
  clock: Clock,
  inputs: ReadonlyMap<string, Tensor>,
  options: NestedOptions,
  onResponse: ResponseHandler,
  axis: CallBatchAxis,
): void {
  try {
    sendInProcess(model, clock, inputs, options, onResponse);
  } catch (error) {
    throw inCallersWords(error, model.config, inputs, axis);
  }
}

/**
 * Settles a promise with the answer. It holds no reference to the inputs, so that the memory of a cancelled request is
 * freed at once.
 */
function settling(
  model: ModelVersion,
  added: boolean,
  resolve: (arrays: OutputArrays) => void,
  reject: (reason: unknown) => void,
): ResponseHandler {
  return (outcome) => {
    if (outcome === undefined)
      reject(
        new TritonError("INTERNAL", `model '${model.name}' sent no response`, { reason: "INVALID_OUTPUT" }),
      );
    else if (TritonError.is(outcome)) reject(namingModel(outcome));
    else {
      try {
        resolve(toArrays(outcome, added, model.config));
      } catch (error) {
        reject(error);
      }
    }
  };
}

function assertUnary({ name, config }: ModelVersion): void {
  if (!isDecoupled(config)) return;
  throw new TritonError(
    "UNSUPPORTED",
    `model '${name}' is decoupled, so infer() cannot return its one response: use stream()`,
    { reason: "DECOUPLED_MODEL" },
  );
}
