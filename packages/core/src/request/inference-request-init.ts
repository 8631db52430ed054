import type { AsyncResource } from "node:async_hooks";
import type { Parameters, Tensor, TritonError } from "@tritonjs/protocol";
import type { RequestTrace } from "../observe/trace/request-trace.js";

import type { InferenceResponse } from "./inference-response.js";

import type { RequestHandle } from "./request-handle.js";

/**
 * Receives the outcomes of a request: responses and errors. `final` is true once, with the last outcome. A decoupled
 * model may end without a further response; `outcome` is undefined then. The first outcome may come before the call
 * that sends the request returns.
 */
export type ResponseHandler = (
  outcome: InferenceResponse | TritonError | undefined,
  final: boolean,
  request: RequestHandle,
) => void;

/**
 * Content of an infer request as decoders produce it. Decoders fill in the fields while they read, and the request is
 * constructed from them directly.
 */
export interface InferInit {
  readonly id?: string;
  readonly inputs: ReadonlyMap<string, Tensor>;
  /** Names of the outputs to return; empty for all. */
  readonly requestedOutputs?: readonly string[];
  readonly parameters?: Parameters;
  /** 0 for the model's default level; 1 is the highest. */
  readonly priority?: number;
  /** Longest wait in the queue, for queues whose policy lets requests set one; 0 for none. */
  readonly queueTimeoutMicroseconds?: number;
  /** Time on the model's clock, in milliseconds, at which the caller stops waiting for the answer. */
  readonly deadline?: number;
  readonly correlationId?: bigint | string;
  readonly sequenceStart?: boolean;
  readonly sequenceEnd?: boolean;
  /** False for a null request, which fills an empty slot of a sequence batch and has no caller. */
  readonly ready?: boolean;
  /** Models that this request is part of the work of, outermost first: ensembles, and models that call others. */
  readonly callers?: readonly string[];
  /**
   * The asynchronous context that the request is made on behalf of.
   * @default the context that constructs the request
   */
  readonly asyncContext?: AsyncResource | undefined;
  /** Set for a request that is traced. */
  readonly trace?: RequestTrace | undefined;
  /**
   * Called at most once, before the response, when nothing reads the inputs any more, so that their memory may be
   * freed. It is not called where a model or a trace may keep them: callbacks on the main thread, and ensembles.
   */
  readonly onInputsUsed?: (() => void) | undefined;
}
