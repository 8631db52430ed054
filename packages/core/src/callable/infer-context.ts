import type { ModelConfig } from "@tritonjs/protocol";
import type { RequestInfo } from "../request/request-info.js";
import type { ModelCaller } from "./model-caller.js";

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
