import type { ModelConfig } from "@tritonjs/protocol";
import type { RequestInfo } from "../request/request-info.js";
import type { ModelCaller } from "./model-caller.js";

/** The asynchronous context of a request. */
export interface RequestScope {
  /**
   * Calls `fn` in the asynchronous context of the code that sent the request. An `AsyncLocalStorage` has the same value
   * there as when the request was made. In a worker it is a plain call, because asynchronous contexts do not cross
   * threads.
   *
   * @example
   * ```ts
   * const inferFunc = (requests) =>
   *   requests.map((request) => request.runInContext(() => answer(request.inputs, tenant.getStore())));
   * ```
   */
  runInContext<T>(fn: () => T): T;
}

/** Where an instance runs. */
export interface InstanceDevice {
  readonly kind: "KIND_CPU" | "KIND_GPU" | "KIND_MODEL";
  /** Number of the GPU; 0 for other kinds. */
  readonly id: number;
}

/** Properties of an instance that stay the same for all of its executions. */
export interface InstanceInfo {
  readonly modelName: string;
  readonly modelVersion: number;
  readonly modelConfig: ModelConfig;
  /** Triton's name of the instance, such as `linear_0`. */
  readonly instanceName: string;
  /** Index of the instance among the instances of the model. */
  readonly instanceIndex: number;
  readonly device: InstanceDevice;
}

/**
 * Second argument of a callback: information about the batch and its instance, and calls of other models.
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
  /** Aborted when every request of the batch has been cancelled. */
  readonly signal: AbortSignal;
  /** The requests of the batch, in the order of their rows. */
  readonly requests: readonly (RequestInfo & RequestScope)[];
}
