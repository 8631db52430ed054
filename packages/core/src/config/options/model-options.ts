import type { DataType, InstanceHosting, InstanceKind, TensorValue } from "@tritonjs/protocol";
import { keyList } from "../schema/key-list.js";
import { HOSTING_OPTION_KEYS } from "./instance-hosting.js";

import type { SequenceOptions } from "./sequence-options.js";
import { VARIABLE_LENGTH_OPTION_KEYS, type VariableLengthOptions } from "./variable-length-options.js";

/** Limits of a queue. */
export interface QueuePolicyOptions {
  /** Effect of a passed timeout: end the request, or run it after all others of its level. @default "REJECT" */
  readonly timeoutAction?: "REJECT" | "DELAY";
  /** Longest time in the queue, in microseconds; 0 for no limit. @default 0 */
  readonly defaultTimeoutMicroseconds?: number;
  /** Whether a request may ask for a shorter time. @default false */
  readonly allowTimeoutOverride?: boolean;
  /**
   * Largest number of requests in the queue of a level. Further ones are refused with UNAVAILABLE. 0 for no limit.
   * @default 0
   */
  readonly maxQueueSize?: number;
}

/** One input of a warm-up sample: zeros unless `randomData`, `data` or a file of raw bytes is given. */
export interface WarmupInputOptions {
  readonly dtype: DataType;
  /** Shape without the batch axis and without -1. */
  readonly shape: readonly number[];
  readonly zeroData?: boolean;
  readonly randomData?: boolean;
  /** Path of a file with the tensor in its wire form. */
  readonly inputDataFile?: string;
  /** The tensor in any form that `infer` accepts, without the batch axis. */
  readonly data?: TensorValue<DataType>;
}

/** Requests that run through each instance before the model serves. */
export interface WarmupOptions {
  readonly name: string;
  /** Number of one-row requests that run as one batch; 0 skips the sample. @default 1 */
  readonly batchSize?: number;
  /** Number of runs of the sample. @default 1 */
  readonly count?: number;
  readonly inputs: Readonly<Record<string, WarmupInputOptions>>;
}

/** How the dynamic batcher joins requests. */
export interface BatcherOptions extends VariableLengthOptions {
  /**
   * Longest time that the oldest request waits for others to join its batch, in microseconds. With 0, a batch holds the
   * requests that arrived while the instances were busy, so no request waits needlessly.
   * @default 0
   */
  readonly maxQueueDelayMicroseconds?: number;
  /**
   * Latency target, in milliseconds. The batcher learns how long batches take. It waits only while that saves machine
   * time and all requests can still meet the target. It refuses requests that would miss the target (UNAVAILABLE with
   * `retryAfterMs`). Replaces `maxQueueDelayMicroseconds` and `preferredBatchSize`.
   * @default none: batches form by these two options
   */
  readonly targetLatencyMs?: number;
  /** Batch sizes at which a batch is cut before the delay ends. @default [maxBatchSize] */
  readonly preferredBatchSize?: readonly number[];
  /** Number of priority levels, of which 1 is the highest; 0 for none. @default 0 */
  readonly priorityLevels?: number;
  /** Level of requests without a level, or with one that does not exist. Required with `priorityLevels`. */
  readonly defaultPriorityLevel?: number;
  /** Limits of the queue. @default no timeout, no limit */
  readonly defaultQueuePolicy?: QueuePolicyOptions;
  /** Limits of the queue of single priority levels, by number. */
  readonly priorityQueuePolicy?: Readonly<Record<number, QueuePolicyOptions>>;
  /** Whether responses keep the order of the requests. Fast ones then wait for slower ones. @default false */
  readonly preserveOrdering?: boolean;
}

/** Resources that an instance takes while it runs, for `new Triton({ rateLimit: "execution_count" })`. */
export interface RateLimiterOptions {
  /** Units of named resources. They belong to the instance's device unless `global`. */
  readonly resources?: readonly {
    readonly name: string;
    readonly count: number;
    readonly global?: boolean;
  }[];
  /** Weight of the instance's turns: priority 2 gets half the turns of priority 1. @default 1 */
  readonly priority?: number;
}

/** A group of equal instances of a model. */
export interface InstanceGroupOptions extends InstanceHosting {
  /** Name of the group. @default the model's name and the index of the group: `m_0` */
  readonly name?: string;
  /** Number of instances in the group; with `KIND_GPU`, for each of `gpus`. @default 1 */
  readonly count?: number;
  /**
   * Kind of the instances. @default "KIND_AUTO", which is `KIND_GPU` when `gpus` are listed and exist, and else
   * `KIND_CPU`, which is refused with a list of GPUs
   */
  readonly kind?: InstanceKind;
  /** Device numbers of the GPUs to use. @default all of them, with `KIND_GPU` */
  readonly gpus?: readonly number[];
  /** Whether the instances are loaded but get no requests. @default false */
  readonly passive?: boolean;
  /**
   * Name of the policy of `new Triton({ hostPolicies })` that applies. @default "cpu", "gpu_0" or "model", by kind and
   * device
   */
  readonly hostPolicy?: string;
  readonly rateLimiter?: RateLimiterOptions;
}

/**
 * How a model is served: PyTriton's `ModelConfig` in camelCase.
 *
 * @example
 * ```ts
 * const config: ModelOptions = { maxBatchSize: 128, batcher: { maxQueueDelayMicroseconds: 500 } };
 * ```
 */
export interface ModelOptions {
  /**
   * Whether tensors have a leading batch axis. Without it, each request runs alone.
   * @default true; false for a callback made with `sample`
   */
  readonly batching?: boolean;
  /** Largest number of rows in one batch, and in one request. @default 4, as in PyTriton */
  readonly maxBatchSize?: number;
  /**
   * Options of the dynamic batcher; `false` runs each request as its own batch. For a decoupled model without a
   * batch axis, they set the queue alone: priorities, time limits and size limits.
   * @default {}
   */
  readonly batcher?: BatcherOptions | false;
  /** Serves sequences of requests with one correlation id. Replaces the dynamic batcher. @default none */
  readonly sequence?: SequenceOptions;
  /** Where the model runs, and in how many instances. @default one instance, or one for each function of a list */
  readonly instanceGroup?: InstanceGroupOptions | readonly InstanceGroupOptions[];
  /** Samples that run before the model is ready. If one fails, loading fails. @default [] */
  readonly modelWarmup?: readonly WarmupOptions[];
  /** Whether equal requests are answered from the cache of `new Triton({ responseCache })`. @default false */
  readonly responseCache?: boolean;
  /**
   * Whether a request may have any number of responses, which the callback yields or sends.
   * @default true for a generator function, else false
   */
  readonly decoupled?: boolean;
  /**
   * Whether requests run step by step, joining and leaving between steps, as a callback made with `stepwise` expects.
   * Set it for a module that exports such a callback.
   * @default true for a callback made with `stepwise`, else false
   */
  readonly stepwise?: boolean;
  /** Free text for the callback, shown in the configuration. */
  readonly parameters?: Readonly<Record<string, string>>;
}

/** Names of the options, to detect misspelt ones. */
export const MODEL_OPTION_KEYS = keyList<ModelOptions>({
  batching: true,
  maxBatchSize: true,
  batcher: true,
  sequence: true,
  instanceGroup: true,
  modelWarmup: true,
  responseCache: true,
  decoupled: true,
  stepwise: true,
  parameters: true,
});
/** Names of the batcher's options. */
export const BATCHER_OPTION_KEYS = [
  ...keyList<Omit<BatcherOptions, keyof VariableLengthOptions>>({
    maxQueueDelayMicroseconds: true,
    targetLatencyMs: true,
    preferredBatchSize: true,
    preserveOrdering: true,
    priorityLevels: true,
    defaultPriorityLevel: true,
    defaultQueuePolicy: true,
    priorityQueuePolicy: true,
  }),
  ...VARIABLE_LENGTH_OPTION_KEYS,
];
/** Names of a queue policy's options. */
export const QUEUE_POLICY_OPTION_KEYS = keyList<QueuePolicyOptions>({
  timeoutAction: true,
  defaultTimeoutMicroseconds: true,
  allowTimeoutOverride: true,
  maxQueueSize: true,
});
/** Names of an instance group's options. */
export const INSTANCE_GROUP_OPTION_KEYS = [
  ...keyList<Omit<InstanceGroupOptions, keyof InstanceHosting>>({
    name: true,
    count: true,
    kind: true,
    gpus: true,
    passive: true,
    hostPolicy: true,
    rateLimiter: true,
  }),
  ...HOSTING_OPTION_KEYS,
];
/** Names of the rate limiter's options. */
export const RATE_LIMITER_OPTION_KEYS = keyList<RateLimiterOptions>({ resources: true, priority: true });
