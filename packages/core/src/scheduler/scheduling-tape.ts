import type { ModelConfig, TritonError } from "@tritonjs/protocol";
import type { PlannedInstance } from "../config/instance-groups.js";
import type { ShareOptions } from "../config/model-options.js";
import type { Executor } from "../instance/backend.js";
import type { InstanceGroup } from "../instance/instance-group.js";
import type { InstanceModel, ModelInstance } from "../instance/model-instance.js";
import type { InferenceRequest } from "../request/inference-request.js";
import type { Clock } from "../system/clock.js";
import type { VariableLength } from "./grouping-scheduler.js";
import type { Scheduler } from "./scheduler.js";

/**
 * Records what decides about batches: `recordScheduling()` of `@tritonjs/core/time-travel`. A server without one makes no
 * call for it on the path of a request.
 */
export interface SchedulingTape {
  /** Prepares the tape for a server. It belongs to one server. */
  begin(server: TapedServer): void;
  /** Prepares the tape for a version of a model, or for its next configuration. */
  open(model: TapedPlan, clock: Clock): ModelTape;
  /** What is recorded so far, in the form of a file. */
  bytes(): Uint8Array;
  /** Called when the server has closed. */
  end(): Promise<void>;
}

/** Settings of a server that decide about batches. */
export interface TapedServer {
  readonly rateLimit: "execution_count" | "off";
  readonly rateLimitResources: readonly {
    readonly name: string;
    readonly count: number;
    readonly device?: number | "global";
  }[];
  readonly holdUntil: number;
  readonly backlogHoldUntil: number;
}

/** A model as the tape needs it. */
export interface TapedPlan {
  readonly name: string;
  readonly version: number;
  readonly config: ModelConfig;
  readonly mixedInputs?: boolean | undefined;
  readonly variableLength?: VariableLength | undefined;
  readonly shares?: ShareOptions | undefined;
  /** Set if callers share all models together. */
  readonly ledger?: object | undefined;
}

/** What the parts of one model tell the tape. */
export interface ModelTape {
  /** Clock of the scheduler and its group of instances. */
  readonly clock: Clock;
  instance(placement: PlannedInstance, executor: Executor, model: InstanceModel): ModelInstance;
  scheduler(inner: Scheduler, group: InstanceGroup): Scheduler;
  /** A request is about to be cancelled. */
  cancelling(request: InferenceRequest): void;
  /** The request that was about to be cancelled is over, and its sender knows. */
  cancelled(request: InferenceRequest): void;
  settled(request: InferenceRequest, error: TritonError | undefined): void;
}
