import type { InferOptions, Tensor, TritonError, toNdArray } from "@tritonjs/protocol";
import type { RequestTrace } from "../observe/trace/request-trace.js";

import type { InferenceResponse } from "../request/inference-response.js";

/** Values by input name, in any form that a tensor can be given in, with the batch axis if the model has one. */
export type CallInputs = Readonly<Record<string, unknown>>;

/** ndarrays by output name. */
export type CallOutputs = Record<string, ReturnType<typeof toNdArray>>;

/** Options of a call of one model from another. The call also ends when the caller's requests are cancelled or run out of time. */
export interface ContextCallOptions extends InferOptions {
  /** Version of the called model. @default the highest version that is ready */
  readonly modelVersion?: number;
}

/** Calls other models from within a callback. */
export interface ModelCaller {
  /**
   * Infers with another model, through the same checks, queue and batcher as any request. The call ends when the
   * caller's requests are cancelled or run out of time.
   *
   * @typeParam R type of the outputs, such as `{ y: NdArray<Float32Array> }`
   * @throws TritonError NOT_FOUND for an unknown model, INTERNAL for a model that already executes the same request;
   * otherwise as `ModelHandle.infer`.
   */
  readonly infer: <R extends object = CallOutputs>(
    modelName: string,
    inputs: CallInputs,
    options?: ContextCallOptions,
  ) => Promise<R>;
  /** Streams the responses of a decoupled model, one at a time. Leaving the loop cancels the call. */
  readonly stream: <R extends object = CallOutputs>(
    modelName: string,
    inputs: CallInputs,
    options?: ContextCallOptions,
  ) => AsyncGenerator<R, void, void>;
}

/** Options of a call with tensors. */
export interface TensorCallOptions extends ContextCallOptions {
  /** Outputs to return. @default all */
  readonly requestedOutputs?: readonly string[];
  /** Whether the called model may be decoupled, that is, answer with any number of responses. @default true */
  readonly decoupled?: boolean;
  /**
   * Asks the called model to stop when it aborts. A model that supports such a request ends by itself; any other call
   * is cancelled.
   */
  readonly stopSignal?: AbortSignal | undefined;
}

/** A response of a called model, or an error. Has neither when the model ends without another response. */
export interface TensorAnswer {
  readonly outcome: InferenceResponse | TritonError | undefined;
  /** True for the last answer. */
  readonly final: boolean;
}

/** Calls other models with tensors as they are, for backends whose models are not written in JavaScript. */
export interface TensorCaller {
  /**
   * Streams the responses and errors of a model, one at a time. Leaving the loop cancels the call.
   *
   * @throws TritonError UNAVAILABLE for a model that is not ready, UNSUPPORTED for a decoupled one where that is not
   * allowed, and errors with which a request is refused.
   */
  readonly callWithTensors: (
    modelName: string,
    inputs: ReadonlyMap<string, Tensor>,
    options: TensorCallOptions,
  ) => AsyncGenerator<TensorAnswer, void, void>;
}

/** The execution on whose behalf a model is called. */
export interface CallOrigin {
  /** Aborted when no request waits for the caller any more. */
  readonly signal: AbortSignal;
  /** Time limit of the caller, in milliseconds on the model's clock. */
  readonly deadline: number | undefined;
  /** Models that execute the caller's requests, the caller itself last. */
  readonly callers: readonly string[];
  /** Trace of the first of the caller's requests that is traced. */
  readonly trace: RequestTrace | undefined;
}

/** Makes the model caller of one execution. */
export type CallModels = (origin: CallOrigin) => ModelCaller & TensorCaller;
