import { errorFor, isDecoupled, type Tensor, TritonError } from "@tritonjs/protocol";
import { namingModel } from "../callback/callback-error.js";
import type {
  CallInputs,
  CallModels,
  CallOrigin,
  ContextCallOptions,
  TensorAnswer,
  TensorCallOptions,
} from "../callback/infer-func.js";
import type { ModelVersion } from "../model/model-version.js";
import type { ModelRegistry } from "../model/registry.js";
import type { RequestTrace } from "../observe/request-trace.js";
import type { RequestHandle } from "../request/inference-request.js";
import type { InferenceResponse } from "../request/inference-response.js";
import {
  type InputValues,
  inCallersWords,
  type OutputArrays,
  toArrays,
  toTensors,
  withoutUnknownId,
} from "./in-process-tensors.js";
import {
  awaitReady,
  type InProcessSender,
  inferInProcess,
  type NestedOptions,
  release,
  sendInProcess,
} from "./infer-in-process.js";

/**
 * Streams the responses to one request. Back-pressure holds: a decoupled model makes no more responses than the reader
 * takes. Leaving the loop early, or an error, cancels the request.
 *
 * @throws TritonError INVALID_ARG at once for inputs that cannot become tensors of the model.
 */
export function streamInProcess(
  model: ModelVersion,
  values: InputValues,
  options: NestedOptions,
): AsyncGenerator<OutputArrays, void, void> {
  // Done before the first wait, so that later changes of the caller to its arrays have no effect.
  return responses(model, toTensors(model, values, false), options);
}

async function* responses(
  model: ModelVersion,
  inputs: ReadonlyMap<string, Tensor>,
  options: NestedOptions,
): AsyncGenerator<OutputArrays, void, void> {
  if (model.state !== "READY") await awaitReady(model, options);
  const answers = openReader(model, inputs, options);
  try {
    for (;;) {
      const { outcome, final } = await answers.next();
      if (TritonError.is(outcome)) throw withoutUnknownId(namingModel(outcome));
      if (outcome !== undefined) yield toArrays(outcome, false, model.config);
      if (final) return;
    }
  } finally {
    answers.leave();
  }
}

function openReader(
  model: ModelVersion,
  inputs: ReadonlyMap<string, Tensor>,
  options: NestedOptions,
): AnswerReader {
  try {
    return new AnswerReader(model, inputs, options);
  } catch (error) {
    throw inCallersWords(error, model.config, inputs, "given");
  }
}

/**
 * Streams the answers to one request, with tensors as they are. Back-pressure holds: a decoupled model makes no more
 * answers than the reader takes. Leaving the loop early cancels the request.
 *
 * @throws TritonError UNAVAILABLE for a model that is not ready, UNSUPPORTED for a decoupled one where that is not
 * allowed, and errors with which the request is refused.
 */
async function* streamTensors(
  model: ModelVersion,
  inputs: ReadonlyMap<string, Tensor>,
  options: NestedOptions & Pick<TensorCallOptions, "decoupled" | "stopSignal">,
): AsyncGenerator<TensorAnswer, void, void> {
  const { name, config } = model;
  if (model.state !== "READY") throw errorFor("MODEL_NOT_READY", `model '${name}' is not ready`);
  if (options.decoupled === false && isDecoupled(config)) {
    throw errorFor(
      "DECOUPLED_MODEL",
      `model '${name}' is decoupled, so it has no single response: use a streaming call`,
    );
  }
  const answers = new AnswerReader(model, inputs, options);
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

/** Reads the answers to one request, one at a time. The model is paused until the next answer is read. */
class AnswerReader implements InProcessSender {
  forgetClient: (() => void) | undefined = undefined;
  sampled: RequestTrace | undefined = undefined;
  readonly #waiting: TensorAnswer[] = [];
  readonly #request: RequestHandle;
  #wake = () => {};

  /** Sends the request. Throws the error with which it is refused. */
  constructor(model: ModelVersion, inputs: ReadonlyMap<string, Tensor>, options: NestedOptions) {
    this.#request = sendInProcess(model, inputs, options, this);
  }

  receive(outcome: InferenceResponse | TritonError | undefined, final: boolean, sent: RequestHandle): void {
    if (final) release(this);
    this.#waiting.push({ outcome, final });
    sent.pause();
    this.#wake();
  }

  /** Reads the next answer. Must not be called after the last one, because no other follows. */
  async next(): Promise<TensorAnswer> {
    for (;;) {
      const next = this.#waiting.shift();
      if (next !== undefined) return next;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
        this.#request.resume();
      });
    }
  }

  /** Asks the model to stop if it supports that. Otherwise cancels the request. */
  askToStop(): void {
    if (!this.#request.askToStop()) this.#request.cancel();
  }

  /** Cancels the request, because its reader has left. */
  leave(): void {
    this.#request.cancel();
  }
}

/**
 * Lets callbacks call the models of a registry. A call gets the remaining time of its caller, and is cancelled with it.
 */
export function callModels(registry: ModelRegistry): CallModels {
  const find = (name: string, { modelVersion }: ContextCallOptions) =>
    registry.find(name, modelVersion === undefined ? "" : String(modelVersion));
  return (origin) => ({
    async infer<R>(name: string, inputs: CallInputs, options: ContextCallOptions = {}) {
      const outputs = inferInProcess(find(name, options), inputs, nested(origin, options), "given");
      return outputs as Promise<unknown> as Promise<R>;
    },
    async *stream<R>(name: string, inputs: CallInputs, options: ContextCallOptions = {}) {
      yield* streamInProcess(
        find(name, options),
        inputs,
        nested(origin, options),
      ) as AsyncGenerator<unknown> as AsyncGenerator<R, void, void>;
    },
    async *callWithTensors(name, inputs, options) {
      yield* streamTensors(find(name, options), inputs, { ...options, ...nested(origin, options) });
    },
  });
}

function nested(
  { signal, deadline, callers, trace }: CallOrigin,
  options: ContextCallOptions,
): NestedOptions {
  const both = options.signal === undefined ? signal : AbortSignal.any([signal, options.signal]);
  return { ...options, signal: both, deadline, callers, parentTrace: trace };
}
