import type { InferOptions, Tensor, TritonError, toNdArray } from "@tritonjs/protocol";
import type { RequestTrace } from "../observe/trace/request-trace.js";

import type { InferenceResponse } from "../request/inference-response.js";

/** Values by input name, in any form that a tensor can be given, with the batch axis when the model has one. */
export type CallInputs = Readonly<Record<string, unknown>>;

/** ndarrays by output name. */
export type CallOutputs = Record<string, ReturnType<typeof toNdArray>>;

/** Options of a call of one model from another. The call also ends when the caller's requests are cancelled or run out of time. */
export interface ContextCallOptions extends InferOptions {
  /** @default the highest version that is ready */
  readonly modelVersion?: number;
}

/** Calls other models from within a callback. */
export interface ModelCaller {
  /**
   * Infers with another model: through its checks, queue and batcher, as any request. The call ends when the caller's
   * requests are given up or run out of time.
   *
   * @typeParam R what the outputs are: `{ y: NdArray<Float32Array> }`
   * @throws TritonError NOT_FOUND for an unknown model, INTERNAL for a model that is at work on the same request
   * already, and as `ModelHandle.infer`.
   */
  readonly infer: <R extends object = CallOutputs>(
    modelName: string,
    inputs: CallInputs,
    options?: ContextCallOptions,
  ) => Promise<R>;
  /** The responses of a decoupled model, one at a time; leaving the loop gives the call up. */
  readonly stream: <R extends object = CallOutputs>(
    modelName: string,
    inputs: CallInputs,
    options?: ContextCallOptions,
  ) => AsyncGenerator<R, void, void>;
}

/** What can be said about a call with tensors. */
export interface TensorCallOptions extends ContextCallOptions {
  /** Outputs to return. @default all */
  readonly requestedOutputs?: readonly string[];
  /** Whether a model may be called that answers with any number of responses. @default true */
  readonly decoupled?: boolean;
  /** When aborted, a model that can be told that no more answers are wanted ends as it likes; any other is cut off. */
  readonly stopSignal?: AbortSignal | undefined;
}

/** A response of a called model, or an error; neither when it ends without another. */
export interface TensorAnswer {
  readonly outcome: InferenceResponse | TritonError | undefined;
  /** True for the last. */
  readonly final: boolean;
}

/** Calls other models with tensors as they are: for backends whose models are not written in JavaScript. */
export interface TensorCaller {
  /**
   * The responses and errors of a model, one at a time; leaving the loop gives the call up.
   *
   * @throws TritonError UNAVAILABLE for a model that is not ready, UNSUPPORTED for one that is decoupled where that
   * may not be, and what a request is refused for.
   */
  readonly callWithTensors: (
    modelName: string,
    inputs: ReadonlyMap<string, Tensor>,
    options: TensorCallOptions,
  ) => AsyncGenerator<TensorAnswer, void, void>;
}

/** On whose behalf a model is called. */
export interface CallOrigin {
  /** Aborted when nobody waits for the caller any more. */
  readonly signal: AbortSignal;
  /** When the caller must be done, in milliseconds on the model's clock. */
  readonly deadline: number | undefined;
  /** Models that are at work on the caller's requests, the caller itself last. */
  readonly callers: readonly string[];
  /** That of the first of the caller's requests that is traced. */
  readonly trace: RequestTrace | undefined;
}

/** Makes the caller of one execution. */
export type CallModels = (origin: CallOrigin) => ModelCaller & TensorCaller;
