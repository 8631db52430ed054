import type { DataType, InstanceHosting, InstanceKind, TensorValue } from "@tritonjs/protocol";
import { keyList } from "../schema/key-list.js";
import { HOSTING_OPTION_KEYS } from "./instance-hosting.js";

import type { SequenceOptions } from "./sequence-options.js";
import { VARIABLE_LENGTH_OPTION_KEYS, type VariableLengthOptions } from "./variable-length-options.js";

/** What may happen to requests that wait in a queue. */
export interface QueuePolicyOptions {
  /** What a passed timeout does: end the request, or let it run after all others of its level. @default "REJECT" */
  readonly timeoutAction?: "REJECT" | "DELAY";
  /** Longest time in the queue, in microseconds; 0 for any. @default 0 */
  readonly defaultTimeoutMicroseconds?: number;
  /** Whether a request may ask for a shorter time. @default false */
  readonly allowTimeoutOverride?: boolean;
  /** Most requests in the queue of a level; more are refused with UNAVAILABLE. 0 for any number. @default 0 */
  readonly maxQueueSize?: number;
}

/** One input of a warmup sample: zeros unless `randomData`, `data` or a file of raw bytes is given. */
export interface WarmupInputOptions {
  readonly dtype: DataType;
  /** Without the batch axis, and without -1. */
  readonly shape: readonly number[];
  readonly zeroData?: boolean;
  readonly randomData?: boolean;
  /** Path of a file with the tensor in its wire form. */
  readonly inputDataFile?: string;
  /** The tensor itself, as it would be given to `infer`, without the batch axis. */
  readonly data?: TensorValue<DataType>;
}

/** Requests to run through each instance before the model serves. */
export interface WarmupOptions {
  readonly name: string;
  /** Requests of one row each that run as one batch; 0 skips the sample. @default 1 */
  readonly batchSize?: number;
  /** Times that the sample runs. @default 1 */
  readonly count?: number;
  readonly inputs: Readonly<Record<string, WarmupInputOptions>>;
}

/** How the dynamic batcher joins requests. */
export interface BatcherOptions extends VariableLengthOptions {
  /**
   * Longest time that the oldest request waits for others to join its batch, in microseconds. With 0 a batch
   * is as large as the requests that came while the instances were busy: nobody waits for nothing.
   * @default 0
   */
  readonly maxQueueDelayMicroseconds?: number;
  /**
   * Latency to aim for, in milliseconds: the batcher learns how long batches take, waits only while that saves machine
   * time and everybody can still be answered in time, and refuses requests that it could not answer in time
   * (UNAVAILABLE with `retryAfterMs`). Takes the place of `maxQueueDelayMicroseconds` and `preferredBatchSize`.
   * @default none: batches form by these
   */
  readonly targetLatencyMs?: number;
  /** Batch sizes worth cutting a batch for before the delay ends. @default [maxBatchSize] */
  readonly preferredBatchSize?: readonly number[];
  /** Priority levels, of which 1 is the highest; 0 for none. @default 0 */
  readonly priorityLevels?: number;
  /** Level of requests that name none, or one that does not exist. Needed with `priorityLevels`. */
  readonly defaultPriorityLevel?: number;
  /** What may happen to a waiting request. @default nothing: no timeout, no limit */
  readonly defaultQueuePolicy?: QueuePolicyOptions;
  /** The same for single priority levels, by number. */
  readonly priorityQueuePolicy?: Readonly<Record<number, QueuePolicyOptions>>;
  /** Answer in the order in which the requests came, at the price of waiting for slower ones. @default false */
  readonly preserveOrdering?: boolean;
}

/** What an instance needs while it runs, for `new Triton({ rateLimit: "execution_count" })`. */
export interface RateLimiterOptions {
  /** Pieces of named resources, of the instance's device unless `global`. */
  readonly resources?: readonly {
    readonly name: string;
    readonly count: number;
    readonly global?: boolean;
  }[];
  /** An instance of priority 2 gets half the turns of one of priority 1. @default 1 */
  readonly priority?: number;
}

/** A group of like instances of a model. */
export interface InstanceGroupOptions extends InstanceHosting {
  /** @default the model's name and the position of the group: `m_0` */
  readonly name?: string;
  /** Instances in the group; with `KIND_GPU`, for each of `gpus`. @default 1 */
  readonly count?: number;
  /** @default "KIND_AUTO", which is `KIND_GPU` when `gpus` are listed and exist, and else `KIND_CPU` */
  readonly kind?: InstanceKind;
  /** Device numbers of the GPUs to use. @default all of them, with `KIND_GPU` */
  readonly gpus?: readonly number[];
  /** Loaded, and given no requests. @default false */
  readonly passive?: boolean;
  /** Which of `new Triton({ hostPolicies })` holds. @default "cpu", "gpu_0" or "model", by kind and device */
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
   * Whether tensors have a leading batch axis. Without it each request runs alone.
   * @default true; false for a callback made with `sample`
   */
  readonly batching?: boolean;
  /** Most rows in one batch, and in one request. @default 4, as in PyTriton */
  readonly maxBatchSize?: number;
  /** Options of the dynamic batcher; `false` runs each request as its own batch. @default {} */
  readonly batcher?: BatcherOptions | false;
  /** Serves sequences of requests with one correlation id; takes the place of the dynamic batcher. @default none */
  readonly sequence?: SequenceOptions;
  /** Where and how many times the model runs. @default one instance, or one for each function of a list */
  readonly instanceGroup?: InstanceGroupOptions | readonly InstanceGroupOptions[];
  /** Samples to run before the model is ready; one that fails makes loading fail. @default [] */
  readonly modelWarmup?: readonly WarmupOptions[];
  /** Whether equal requests are answered from the cache of `new Triton({ responseCache })`. @default false */
  readonly responseCache?: boolean;
  /**
   * Whether a request is answered by any number of responses, which the callback yields or sends.
   * @default true for a generator function, else false
   */
  readonly decoupled?: boolean;
  /**
   * Whether requests run step by step, joining and leaving between steps, as a callback made with `stepwise` wants. To be
   * said for a module that exports one.
   * @default true for a callback made with `stepwise`, else false
   */
  readonly stepwise?: boolean;
  /** Free text for the callback, shown in the configuration. */
  readonly parameters?: Readonly<Record<string, string>>;
}

/** Names of the options, to tell a misspelt one from a known one. */
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
