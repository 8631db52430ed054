import type { ModelConfig } from "../config/model-config.js";
import type { Parameters } from "../request/parameters.js";
import type { SequenceInfo } from "../request/sequence-info.js";
import type { ModelCaller } from "./model-caller.js";

/** What is known about one request besides its tensors. */
export interface RequestInfo {
  /** Id that the client gave, or an empty string. */
  readonly id: string;
  readonly parameters: Parameters;
  /** 0 for the default level, 1 for the highest. */
  readonly priority: number;
  /** Time that the client allows in the queue, 0 for any. */
  readonly queueTimeoutMicroseconds: number;
  readonly correlationId: bigint | string | undefined;
  readonly sequenceStart: boolean;
  readonly sequenceEnd: boolean;
  /** The sequence that the request belongs to; undefined for a model without sequences and for null requests. */
  readonly sequence: SequenceInfo | undefined;
  /** False for a null request, which fills an empty slot of a sequence batch: its outputs are thrown away. */
  readonly ready: boolean;
  /** Outputs that the client asked for; empty for all. */
  readonly requestedOutputs: readonly string[];
  /** Rows of this request along the batch axis; 0 for a model without one. */
  readonly batchSize: number;
}

/** Where a request comes from. */
export interface RequestScope {
  /**
   * Calls `fn` in the asynchronous context of whoever sent the request: an `AsyncLocalStorage` has the value there
   * that it had when the request was made. In a worker it is a plain call: nothing of the kind crosses threads.
   *
   * @example
   * ```ts
   * const inferFunc = (requests) =>
   *   requests.map((request) => request.runInContext(() => answer(request.inputs, tenant.getStore())));
   * ```
   */
  runInContext<T>(fn: () => T): T;
}

/** The plain fields of a request, without what only the library looks at. */
export function requestInfo(request: RequestInfo): RequestInfo {
  return {
    id: request.id,
    parameters: request.parameters,
    priority: request.priority,
    queueTimeoutMicroseconds: request.queueTimeoutMicroseconds,
    correlationId: request.correlationId,
    sequenceStart: request.sequenceStart,
    sequenceEnd: request.sequenceEnd,
    sequence: request.sequence,
    ready: request.ready,
    requestedOutputs: request.requestedOutputs,
    batchSize: request.batchSize,
  };
}

/** Where an instance runs. */
export interface InstanceDevice {
  readonly kind: "KIND_CPU" | "KIND_GPU" | "KIND_MODEL";
  /** Number of the GPU; 0 for other kinds. */
  readonly id: number;
}

/** What stays the same for all executions of one instance. */
export interface InstanceInfo {
  readonly modelName: string;
  readonly modelVersion: number;
  readonly modelConfig: ModelConfig;
  /** Triton's name of the instance: `linear_0`. */
  readonly instanceName: string;
  /** Position of the instance among those of the model. */
  readonly instanceIndex: number;
  readonly device: InstanceDevice;
}

/**
 * What a callback is told besides its tensors.
 *
 * @example
 * ```ts
 * batch(async ({ x }, context) => {
 *   const response = await fetch(url, { signal: context.signal });
 *   console.log(context.instanceName, context.requests.map((request) => request.id));
 *   const { scores } = await context.infer("other-model", { x });
 *   return { y: await run(x, response) };
 * });
 * ```
 */
export interface InferContext extends InstanceInfo, ModelCaller {
  /** Aborted when every request of the batch has been given up. */
  readonly signal: AbortSignal;
  /** The requests of the batch, in the order of their rows. */
  readonly requests: readonly (RequestInfo & RequestScope)[];
}
