import {
  type DataType,
  type InstanceHosting,
  type InstanceKind,
  type Isolation,
  keyList,
  type ModelConfig,
  type ModelQueuePolicy,
  optionTypes,
  type RecycleOptions,
  sameShape,
  shapeToString,
  type TensorValue,
  TritonError,
  tensorFromValue,
} from "@tritonjs/protocol";
import type { NdArray } from "ndarray";
import type { RequestInfo } from "../request-info.js";
import type { HostPolicy } from "../system/host-policy.js";
import type { SequenceOptions } from "./sequence-options.js";

const ISOLATIONS = keyList<Record<Isolation, unknown>>({ inline: true, worker: true, process: true });

export const HOSTING_OPTION_TYPES = optionTypes<InstanceHosting>({
  isolation: "string",
  heapLimitMb: "number",
  executionTimeoutMs: "number",
  abandonedTimeoutMs: "number",
  recycle: "any",
});

/** Limits with which a worker or process is started. */
export interface InstanceLimits {
  readonly heapLimitMb?: number | undefined;
  readonly hostPolicy?: HostPolicy | undefined;
}

export const RECYCLE_OPTION_TYPES = optionTypes<RecycleOptions>({
  afterRequests: "number",
  aboveMemoryMb: "number",
});

/**
 * Lists problems with the hosting of a group, given its possible isolations.
 *
 * @param where the group in the texts
 * @param elsewhere what to do for another isolation
 */
export function hostingProblems(
  where: string,
  hosting: InstanceHosting,
  possible: readonly Isolation[],
  isNative: boolean,
  elsewhere?: string,
): string[] {
  const { isolation = possible[0]!, heapLimitMb, executionTimeoutMs, abandonedTimeoutMs, recycle } = hosting;
  if (!ISOLATIONS.includes(isolation)) {
    return [`${where}.isolation: expected one of ${ISOLATIONS.join(", ")}, got '${String(isolation)}'`];
  }
  const problems: string[] = [];
  if (!possible.includes(isolation)) {
    problems.push(
      `${where}.isolation: expected ${possible.join(" or ")}, which this model can run in, got '${isolation}'` +
        (elsewhere === undefined ? "" : `: ${elsewhere}`),
    );
  }
  const { afterRequests, aboveMemoryMb } = recycle ?? {};
  const numbers = { heapLimitMb, executionTimeoutMs, abandonedTimeoutMs, afterRequests, aboveMemoryMb };
  for (const [name, value] of Object.entries(numbers)) {
    if (value === undefined) continue;
    if (!(Number.isFinite(value) && value > 0)) {
      problems.push(`${where}.${name}: expected a number above 0, got ${String(value)}`);
    }
    if (isolation === "inline") {
      problems.push(
        `${where}.${name} needs isolation 'worker' or 'process': an inline instance cannot be ended`,
      );
    }
  }
  for (const name of ["executionTimeoutMs", "abandonedTimeoutMs"] as const) {
    if (isNative && isolation === "worker" && hosting[name] !== undefined) {
      problems.push(`${where}.${name} needs isolation 'process': native code in a thread cannot be ended`);
    }
  }
  return problems;
}

/** Key by which requests are grouped. */
export type BatchKey = string | number | bigint | boolean;

/** A request as `batchBy` and `cost` see it, on arrival. */
export interface BatchingRequest extends Omit<RequestInfo, "sequence" | "ready" | "traceparent"> {
  /** The tensors, with the batch axis. Read-only. */
  readonly inputs: Readonly<Record<string, NdArray>>;
}

/**
 * Brings the inputs of the requests of a batch to one shape. It gets the inputs of each request, in batch order. It
 * returns as many, whose tensors agree in all dimensions but the first.
 */
export type BatchPadFunction = (
  requests: readonly Readonly<Record<string, NdArray>>[],
) => readonly Readonly<Record<string, unknown>>[];

/** Value with which an input is filled up. */
export type PadValue = number | bigint | boolean | string;

/** How requests of different lengths share batches. */
export interface VariableLengthOptions {
  /**
   * Returns the group of a request. Only requests of one group share a batch, and a request of another group does not
   * end the batch. Called once for each request. If it throws, the request fails with INVALID_ARG.
   * @default all requests are one group, in which a different shape ends a batch
   */
  readonly batchBy?: (request: BatchingRequest) => BatchKey;
  /**
   * Returns the share of a request in the cost of its batch, such as its number of tokens. The result is a finite
   * number, 0 or more. Called once for each request. If it throws, the request fails with INVALID_ARG.
   */
  readonly cost?: (request: BatchingRequest) => number;
  /** Largest total cost of one batch. A request that costs more by itself is refused. Requires `cost`. */
  readonly maxBatchCost?: number;
  /**
   * Fills inputs with variable dimensions up to the longest of the batch, at the end of each dimension: a value by
   * input name, or a function. Different shapes of these inputs (of all inputs, for a function) then no longer end a
   * batch. Callbacks without `batch` get their requests one by one, unpadded.
   */
  readonly pad?: Readonly<Record<string, PadValue>> | BatchPadFunction;
}

const VARIABLE_LENGTH_OPTION_TYPES = optionTypes<VariableLengthOptions>({
  // Checked against the inputs.
  batchBy: "any",
  cost: "any",
  maxBatchCost: "any",
  pad: "any",
});

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
interface WarmupInputOptions {
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

/** What a configuration needs of a batcher, which is a value in `config.batcher`: `Batcher` of `@tritonjs/core/extension`. */
export interface ConfiguredBatcher {
  /** Name in messages. */
  readonly name: string;
  /** Options of Triton's own batcher that hold beside it: priorities, limits of the queue, a delay, padding. @default {} */
  readonly options?: Omit<BatcherOptions, "batchBy">;
  /** Its settings, as parameters that the configuration of the model shows. @default none */
  readonly parameters?: Readonly<Record<string, string>>;
  /** Lists why a model cannot have it. @default nothing */
  problems?(config: ModelConfig): readonly string[];
  /** Makes the scheduler of a model. */
  open(model: never): object;
}

/** True for a batcher, false for options of Triton's own one. */
export function isBatcher<B extends ConfiguredBatcher>(given: B | BatcherOptions): given is B {
  return typeof (given as Partial<ConfiguredBatcher>).open === "function";
}

/** The options of Triton's batcher that a model has: its own, or those beside another batcher. */
export function tritonBatcher(given: ModelOptions["batcher"]): BatcherOptions | false | undefined {
  return typeof given === "object" && given !== null && isBatcher(given) ? (given.options ?? {}) : given;
}

/** The configuration with the settings of a batcher. */
export function withSettings(
  { ...config }: ModelConfig,
  { parameters = {} }: ConfiguredBatcher,
): ModelConfig {
  const texts = Object.entries(parameters).map(([name, stringValue]) => [name, { stringValue }]);
  return { ...config, parameters: { ...config.parameters, ...Object.fromEntries(texts) } };
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
   * Options of the dynamic batcher, or another batcher, such as `deadlines()` of `@tritonjs/scheduling`; `false` runs each
   * request as its own batch. For a decoupled model without a batch axis, the options set the queue alone: priorities,
   * time limits and size limits.
   * @default {}
   */
  readonly batcher?: BatcherOptions | ConfiguredBatcher | false;
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

export const MODEL_OPTION_TYPES = optionTypes<ModelOptions>({
  batching: "any",
  maxBatchSize: "number",
  batcher: "any",
  sequence: "any",
  instanceGroup: ["array", "object"],
  modelWarmup: "array",
  responseCache: "boolean",
  decoupled: "boolean",
  stepwise: "boolean",
  parameters: "object",
});
export const BATCHER_OPTION_TYPES = {
  ...optionTypes<Omit<BatcherOptions, keyof VariableLengthOptions>>({
    maxQueueDelayMicroseconds: "number",
    preferredBatchSize: "array",
    preserveOrdering: "boolean",
    priorityLevels: "number",
    defaultPriorityLevel: "number",
    defaultQueuePolicy: "any",
    priorityQueuePolicy: "object",
  }),
  ...VARIABLE_LENGTH_OPTION_TYPES,
};

/** Has every field of Triton's policy, so that users can write it. */
export const QUEUE_POLICY_OPTION_TYPES = optionTypes<
  QueuePolicyOptions & { readonly [Field in keyof ModelQueuePolicy]?: unknown }
>({
  timeoutAction: "string",
  defaultTimeoutMicroseconds: "number",
  allowTimeoutOverride: "boolean",
  maxQueueSize: "number",
});
export const INSTANCE_GROUP_OPTION_TYPES = {
  ...optionTypes<Omit<InstanceGroupOptions, keyof InstanceHosting>>({
    name: "string",
    count: "number",
    kind: "string",
    gpus: "array",
    passive: "boolean",
    hostPolicy: "string",
    rateLimiter: "any",
  }),
  ...HOSTING_OPTION_TYPES,
};
export const RATE_LIMITER_OPTION_TYPES = optionTypes<RateLimiterOptions>({
  resources: "array",
  priority: "number",
});

/** Parameter of a model configuration with the values that fill inputs up: `speech=0, mask=1`. */
export const PAD_INPUTS = "pad_inputs";

/** The values that fill inputs of different lengths up, as the configuration says; undefined if it names none. */
export function padSetting({
  parameters,
}: Pick<ModelConfig, "parameters">): Record<string, number> | undefined {
  const text = parameters[PAD_INPUTS]?.stringValue;
  return text === undefined ? undefined : Object.fromEntries(namedNumbers(text));
}

/** Reads a parameter such as `a=2, b=1`. A value that is not a number becomes NaN. */
export function namedNumbers(text = ""): ReadonlyMap<string, number> {
  const numbers = new Map<string, number>();
  for (const part of text.split(",")) {
    const at = part.lastIndexOf("=");
    if (part.trim() !== "") numbers.set(part.slice(0, Math.max(0, at)).trim(), Number(part.slice(at + 1)));
  }
  return numbers;
}

/** Data of a warm-up sample in its wire form, or a text with the problem. Undefined without data. */
export function warmupData(
  sample: string,
  name: string,
  input: WarmupInputOptions,
): Uint8Array | string | undefined {
  const { data, dtype, shape } = input;
  if (data === undefined) return undefined;
  const what = `data of input '${name}' in warmup sample '${sample}'`;
  try {
    const tensor = tensorFromValue(data, { what, datatype: dtype, shape, takesScalar: true });
    if (!sameShape(tensor.shape, shape)) {
      return `${what}: expected shape ${shapeToString(shape)}, got ${shapeToString(tensor.shape)}`;
    }
    // A copy, so that later changes by the caller have no effect.
    return new Uint8Array(tensor.bytes);
  } catch (error) {
    return TritonError.from(error).message;
  }
}

export function warmupDataProblems(samples: readonly WarmupOptions[] = []): string[] {
  return samples.flatMap(({ name, inputs }) =>
    Object.entries(inputs ?? {})
      .map(([input, options]) => warmupData(name, input, options))
      .filter((problem) => typeof problem === "string"),
  );
}
