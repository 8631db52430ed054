import type { AsyncResource } from "node:async_hooks";
import type { Parameters, Tensor, TritonError } from "@tritonjs/protocol";
import type { RequestTrace } from "../observe/trace/request-trace.js";

import type { InferenceResponse } from "./inference-response.js";

import type { RequestHandle } from "./request-handle.js";

/**
 * Receives what a request leads to: responses and errors. `final` comes once, with the last of them; a
 * decoupled model may end without a response of its own, then `outcome` is undefined. The first outcome may come before
 * the call that sends the request returns.
 */
export type ResponseHandler = (
  outcome: InferenceResponse | TritonError | undefined,
  final: boolean,
  request: RequestHandle,
) => void;

/**
 * What a client asks of a model: the one form of a request between a decoder and the request. Decoders fill it in as they
 * read, and the request is made of it directly.
 */
export interface InferInit {
  readonly id?: string;
  readonly inputs: ReadonlyMap<string, Tensor>;
  /** Names of the outputs to return; empty for all. */
  readonly requestedOutputs?: readonly string[];
  readonly parameters?: Parameters;
  /** 0 for the model's default level; 1 is the highest. */
  readonly priority?: number;
  /** Time that the request may wait in a queue whose policy allows a request to say so; 0 for none. */
  readonly queueTimeoutMicroseconds?: number;
  /** Time on the model's clock, in milliseconds, after which nobody waits for the answer any more. */
  readonly deadline?: number;
  readonly correlationId?: bigint | string;
  readonly sequenceStart?: boolean;
  readonly sequenceEnd?: boolean;
  /** False for a null request, which fills an empty slot of a sequence batch: nobody waits for an answer. */
  readonly ready?: boolean;
  /** Models whose work the request is part of, outermost first: ensembles, and models that call others. */
  readonly callers?: readonly string[];
  /** The asynchronous context that the request is made on behalf of. @default the one that makes it */
  readonly asyncContext?: AsyncResource | undefined;
  /** Set for a request that is traced. */
  readonly trace?: RequestTrace | undefined;
}

/** What a request is made of. */
export interface InferenceRequestInit extends InferInit {
  readonly modelName: string;
  /** Version as the client wrote it; empty for the highest that is ready. */
  readonly modelVersion?: string;
  readonly onResponse: ResponseHandler;
}
