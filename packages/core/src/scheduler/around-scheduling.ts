import type { TritonError } from "@tritonjs/protocol";
import type { PlannedInstance } from "../config/instance-groups.js";
import type { Executor } from "../instance/backend.js";
import type { InstanceGroup } from "../instance/instance-group.js";
import type { InstanceModel, ModelInstance } from "../instance/model-instance.js";
import type { InferenceRequest } from "../request/inference-request.js";
import type { Clock } from "../system/clock.js";
import type { Scheduler } from "./scheduler.js";

/** Settings of a server that decide about batches. */
export interface SchedulingSettings {
  readonly rateLimit: "execution_count" | "off";
  readonly rateLimitResources: readonly {
    readonly name: string;
    readonly count: number;
    readonly device?: number | "global";
  }[];
  /** Requests that each batcher waits for before its first batch. */
  readonly holdUntil: number;
  /** Requests in its backlog that each sequence batcher waits for in addition. */
  readonly backlogHoldUntil: number;
}

/**
 * Stands around the scheduling of one version, whichever batcher it has: between requests and scheduler, and between
 * scheduler and instances. A server without one makes no call for it on the path of a request.
 *
 * ```
 * requests --> scheduler(batcher) --> instance()
 *                  clock
 * ```
 */
export interface AroundScheduling {
  /** Clock of the scheduler and its group of instances. */
  readonly clock: Clock;
  /** Makes an instance. */
  instance(placement: PlannedInstance, executor: Executor, model: InstanceModel): ModelInstance;
  /** Makes the scheduler that requests reach, around that of the model. */
  scheduler(inner: Scheduler, group: InstanceGroup): Scheduler;
  /** A request is about to be cancelled. */
  cancelling(request: InferenceRequest): void;
  /** The request that was about to be cancelled is over, and its sender knows. */
  cancelled(request: InferenceRequest): void;
  settled(request: InferenceRequest, error: TritonError | undefined): void;
}
