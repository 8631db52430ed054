import type { ModelConfig, TritonError } from "@tritonjs/protocol";
import type { Payload } from "../batch/payload.js";
import type { ConfiguredBatcher } from "../config/model-options.js";
import type { InstanceGroup } from "../instance/instance-group.js";
import type { ModelInstance } from "../instance/model-instance.js";
import type { LateCause } from "../observe/statistics.js";
import type { InferenceRequest } from "../request/inference-request.js";
import type { Clock, DeadlineQueue } from "../system/clock.js";
import type { KnownLimits, Scheduler } from "./scheduler.js";

/** One version of a model, as the batcher that decides about its requests sees it. */
export interface BatchedModel {
  /** The configuration. Its part for one instance, where each instance of a model has a batcher. */
  readonly config: ModelConfig;
  /** The instances, which take payloads when they are idle. */
  readonly instances: InstanceGroup;
  /** Clock of every wait and measurement, in milliseconds. */
  readonly clock: Clock;
  /** Any number of deadlines on one timer. */
  readonly deadlines: DeadlineQueue;
  /** Requests to wait for before the first batch, once: a hold for tests. @default 0 */
  readonly holdUntil?: number;
  /** True if requests with different optional inputs may share a batch, which the model divides by itself. */
  readonly mixedInputs?: boolean | undefined;
  /** Inputs that are padded to one shape later, so their shapes may differ between the requests of a batch. */
  readonly padded?: ReadonlySet<string> | undefined;
  /** Largest total cost of a batch. @default any */
  readonly maxBatchCost?: number | undefined;
  /**
   * Finds the key and the cost of a request that arrives.
   *
   * @throws TritonError INVALID_ARG for this request alone
   */
  readonly classify?: ((request: InferenceRequest) => void) | undefined;
}

/**
 * Decides which requests of a model run together and when: a value in `config.batcher`, as a backend is a value in
 * `inferFunc`. It can serve any number of models.
 *
 * @example A batcher that serves the newest request first.
 * ```ts
 * const newestFirst: Batcher = { name: "newestFirst", open: ({ instances }) => new NewestFirst(instances) };
 * triton.bind({ modelName: "m", inferFunc, config: { batcher: newestFirst } });
 * ```
 */
export interface Batcher extends ConfiguredBatcher {
  /** What it knows of requests with a time limit. @default it does not look at limits and callers */
  readonly limits?: Omit<KnownLimits, "lateCause">;
  /** Makes the scheduler of a version; of one instance, for a model whose sequences have the oldest strategy. */
  open(model: BatchedModel): Scheduler;
  /** Makes what plans the batches of sequences with the direct strategy at one instance. @default Triton's rules */
  openSlots?(model: BatchedModel): SlotPlanner | undefined;
}

/** Decides about the next batch of sequences in the slots of an instance. */
export interface SlotPlanner {
  arrived(request: InferenceRequest, now: number): void;
  started(instance: ModelInstance, payload: Payload, now: number): void;
  ended(instance: ModelInstance, payload: Payload, now: number): void;
  /** @param heads the next request of each slot */
  plan(heads: readonly (InferenceRequest | undefined)[], now: number): SlotPlan;
  /** Why a request is late. @param leastRows rows up to its slot */
  lateCause(request: InferenceRequest, leastRows: number, now: number): LateCause;
}

/** Bounds of the next batch of the direct strategy. */
export interface SlotPlan {
  /** Slots whose requests are refused, each with the error for it. */
  readonly refused: readonly (readonly [slot: number, error: TritonError])[];
  /** Slots that may take part, from the lowest. */
  readonly most: number;
  /** Milliseconds that the batch may wait for further requests. */
  readonly slackMs: number;
}
