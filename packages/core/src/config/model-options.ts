import {
  type DataType,
  errorFor,
  type InstanceHosting,
  type InstanceKind,
  type Isolation,
  isDecoupled,
  keyList,
  type ModelConfig,
  optionTypes,
  type RecycleOptions,
  sameShape,
  shapeToString,
  type TensorValue,
  TritonError,
  tensorFromValue,
  unknownOptions,
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

/** How requests run by their deadlines. */
export interface DeadlineOptions {
  /**
   * Time for the answer to a request that has no deadline, in milliseconds. Its priority level may have another one.
   * @default none: such a request is never refused, and waits for the others
   */
  readonly defaultMs?: number;
  /** The same by priority level, in place of the default timeout of its queue policy. */
  readonly levelMs?: Readonly<Record<number, number>>;
  /**
   * The same by caller, which comes before the level. Callers are named as in {@link ShareOptions}, with or without
   * shares: by default in the header `tritonjs-caller`, or the parameter `caller`.
   */
  readonly callerMs?: Readonly<Record<string, number>>;
}

/** Properties of a request by which its share is found. */
export interface ShareRequest extends Pick<RequestInfo, "id" | "priority" | "parameters"> {
  /** Name in the header of the client, or an empty string. */
  readonly caller: string;
}

/** How the callers of a model share it. */
export interface ShareOptions {
  /**
   * Who a request is charged to. `"caller"` is the header `tritonjs-caller`; any other text is the name of a header. A
   * request without the header is charged by its parameter of the same name: `caller` for `"caller"`. A function returns
   * the name; it sees the request on arrival, and must not throw.
   */
  readonly by: string | ((request: ShareRequest) => string);
  /** Weights by name. A caller with weight 2 gets twice the share of one with weight 1. @default 1 for each caller */
  readonly weights?: Readonly<Record<string, number>>;
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
  /**
   * Whether requests run by their deadlines: the earliest first, in batches that their tightest members allow. Requests
   * that cannot be answered in time are refused (UNAVAILABLE with `retryAfterMs`). The deadline of a request is that of
   * its call, its `timeoutMs` or its `timeout`, else the default of its caller, its priority level or the model.
   * Priority levels do not order the queue any more. It cannot be combined with `targetLatencyMs`.
   * @default false: requests run by priority level and arrival
   */
  readonly deadlines?: boolean | DeadlineOptions;
  /**
   * Shares of callers: requests run in an order in which each caller gets its share of the model's time, whatever the
   * others send. A full queue refuses the request that would run last. It cannot be combined with `targetLatencyMs`.
   * @default none: requests run by priority level and arrival
   */
  readonly shares?: ShareOptions;
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
    targetLatencyMs: "number",
    deadlines: ["boolean", "object"],
    shares: "object",
    preferredBatchSize: "array",
    preserveOrdering: "boolean",
    priorityLevels: "number",
    defaultPriorityLevel: "number",
    defaultQueuePolicy: "any",
    priorityQueuePolicy: "object",
  }),
  ...VARIABLE_LENGTH_OPTION_TYPES,
};
export const DEADLINE_OPTION_TYPES = optionTypes<DeadlineOptions>({
  defaultMs: "number",
  levelMs: "object",
  callerMs: "object",
});
export const SHARE_OPTION_TYPES = optionTypes<ShareOptions>({
  by: ["string", "function"],
  weights: "object",
});
export const QUEUE_POLICY_OPTION_TYPES = optionTypes<QueuePolicyOptions>({
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

/** Parameter of a model configuration that enables adaptive batching. Triton has no field for it. */
const TARGET_LATENCY = "target_latency_ms";

export function targetLatencyMs(config: Pick<ModelConfig, "parameters">): number | undefined {
  const text = config.parameters[TARGET_LATENCY]?.stringValue;
  return text === undefined ? undefined : Number(text);
}

export function withTargetLatency(config: ModelConfig, milliseconds: number | undefined): ModelConfig {
  if (milliseconds === undefined) return config;
  const parameters = { ...config.parameters, [TARGET_LATENCY]: { stringValue: String(milliseconds) } };
  return { ...config, parameters };
}

export function targetLatencyProblems(config: ModelConfig): string[] {
  const target = targetLatencyMs(config);
  if (target === undefined) return [];
  const problems: string[] = [];
  if (!Number.isFinite(target) || target <= 0) {
    problems.push(
      `target latency of model '${config.name}': expected a number of milliseconds above 0, got ${target}`,
    );
  }
  if (config.dynamicBatching === undefined) {
    problems.push(
      `model '${config.name}' has a target latency without the dynamic batcher: set dynamic_batching`,
    );
  }
  if (isDecoupled(config)) {
    problems.push(
      `model '${config.name}' has a target latency and the 'decoupled' transaction policy: it can have one of them`,
    );
  }
  return problems;
}

/** Parameter of a model configuration that enables deadlines. Triton has no field for it. */
const DEADLINES = "deadlines";
/** Parameter with the default limit of requests without a deadline. */
const DEADLINE_DEFAULT = "deadline_default_ms";
/** Parameters with the default limits by level (`1=50, 2=500`) and by caller (`gold=100`). */
const DEADLINE_BY_LEVEL = "deadline_level_ms";
const DEADLINE_BY_CALLER = "deadline_caller_ms";
const BOOLEANS: Readonly<Record<string, boolean>> = { true: true, "1": true, false: false, "0": false };

/** True if requests run by their deadlines. */
export function hasDeadlines({ parameters }: Pick<ModelConfig, "parameters">): boolean {
  const text = parameters[DEADLINES]?.stringValue;
  return text !== undefined && BOOLEANS[text] === true;
}

/** Limits of requests that bring none, in milliseconds. `defaultMs` is 0 for no default. */
export interface DefaultLimits {
  readonly defaultMs: number;
  readonly levelMs: ReadonlyMap<number, number>;
  readonly callerMs: ReadonlyMap<string, number>;
}

/** How requests run by their deadlines; undefined if they do not. */
export function deadlineSetting({ parameters }: Pick<ModelConfig, "parameters">): DefaultLimits | undefined {
  if (!hasDeadlines({ parameters })) return undefined;
  const byLevel = namedNumbers(parameters[DEADLINE_BY_LEVEL]?.stringValue);
  return {
    defaultMs: Number(parameters[DEADLINE_DEFAULT]?.stringValue ?? 0),
    levelMs: new Map([...byLevel].map(([level, limitMs]) => [Number(level), limitMs])),
    callerMs: namedNumbers(parameters[DEADLINE_BY_CALLER]?.stringValue),
  };
}

/** Reads a parameter such as `a=2, b=1`. What is not a number becomes NaN. */
function namedNumbers(text = ""): ReadonlyMap<string, number> {
  const numbers = new Map<string, number>();
  for (const part of text.split(",")) {
    const at = part.lastIndexOf("=");
    if (part.trim() !== "") numbers.set(part.slice(0, Math.max(0, at)).trim(), Number(part.slice(at + 1)));
  }
  return numbers;
}

/** Problems of a parameter that {@link namedNumbers} reads: parts that are not pairs. */
function pairProblems({ name, parameters }: ModelConfig, parameter: string, example: string): string[] {
  const text = parameters[parameter]?.stringValue ?? "";
  return text
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "" && !part.includes("="))
    .map(
      (part) =>
        `parameter '${parameter}' of model '${name}': expected pairs such as ${example}, got '${part}'`,
    );
}

/** A parameter that {@link namedNumbers} reads; none for no numbers. */
function namedParameter(
  parameter: string,
  numbers: Readonly<Record<string, number>> = {},
): ModelConfig["parameters"] {
  const text = Object.entries(numbers)
    .map(([name, number]) => `${name}=${number}`)
    .join(", ");
  return text === "" ? {} : { [parameter]: { stringValue: text } };
}

export function withDeadlines(
  config: ModelConfig,
  deadlines: boolean | DeadlineOptions | undefined,
): ModelConfig {
  if (deadlines === undefined || deadlines === false) return config;
  const { defaultMs, levelMs, callerMs }: DeadlineOptions = typeof deadlines === "object" ? deadlines : {};
  const parameters = {
    ...config.parameters,
    [DEADLINES]: { stringValue: "true" },
    ...(defaultMs !== undefined && { [DEADLINE_DEFAULT]: { stringValue: String(defaultMs) } }),
    ...namedParameter(DEADLINE_BY_LEVEL, levelMs),
    ...namedParameter(DEADLINE_BY_CALLER, callerMs),
  };
  return { ...config, parameters };
}

export function deadlineProblems(config: ModelConfig): string[] {
  const { name, parameters } = config;
  const text = parameters[DEADLINES]?.stringValue;
  if (text !== undefined && BOOLEANS[text] === undefined) {
    return [`parameter '${DEADLINES}' of model '${name}': expected true or false, got '${text}'`];
  }
  const setting = deadlineSetting(config);
  if (setting === undefined) return [];
  const problems = [
    ...pairProblems(config, DEADLINE_BY_LEVEL, "1=50"),
    ...pairProblems(config, DEADLINE_BY_CALLER, "gold=100"),
  ];
  if (problems.length > 0) return problems;
  const { defaultMs, levelMs, callerMs } = setting;
  if (parameters[DEADLINE_DEFAULT] !== undefined && !(Number.isFinite(defaultMs) && defaultMs > 0)) {
    problems.push(
      `default deadline of model '${name}': expected a number of milliseconds above 0, got ` +
        `${parameters[DEADLINE_DEFAULT].stringValue}`,
    );
  }
  for (const [level, limitMs] of levelMs) {
    if (Number.isSafeInteger(level) && level > 0 && limitMs > 0 && limitMs < Number.POSITIVE_INFINITY)
      continue;
    problems.push(
      `default deadline by level of model '${name}': expected levels from 1 on with milliseconds above 0, got ` +
        `${level}=${limitMs}`,
    );
  }
  for (const [caller, limitMs] of callerMs) {
    if (limitMs > 0 && limitMs < Number.POSITIVE_INFINITY) continue;
    problems.push(
      `default deadline of caller '${caller}' of model '${name}': expected a number of milliseconds above 0, got ` +
        `${limitMs}`,
    );
  }
  if (targetLatencyMs(config) !== undefined) {
    problems.push(`model '${name}' has deadlines and a target latency: leave one of them out`);
  }
  return problems;
}

/** Parameter of a model configuration that names the header of callers, which share the model. */
const SHARES = "shares_by";
/** Parameter with the weights of callers: `a=2, b=1`. */
const SHARE_WEIGHTS = "shares_weights";

/** Property by which callers that share the model are told apart: a header, or `caller`; undefined if they do not share it. */
export function sharedBy({ parameters }: Pick<ModelConfig, "parameters">): string | undefined {
  return parameters[SHARES]?.stringValue || undefined;
}

/** Property that names the caller of a request, a header or `caller`; undefined for a model that does not look at callers. */
export function callerNamedBy(config: Pick<ModelConfig, "parameters">): string | undefined {
  return sharedBy(config) ?? (hasDeadlines(config) ? "caller" : undefined);
}

/** Parameter of a model configuration with the values that fill inputs up: `speech=0, mask=1`. */
export const PAD_INPUTS = "pad_inputs";

/** The values that fill inputs of different lengths up, as the configuration says; undefined if it names none. */
export function padSetting({
  parameters,
}: Pick<ModelConfig, "parameters">): Record<string, number> | undefined {
  const text = parameters[PAD_INPUTS]?.stringValue;
  return text === undefined ? undefined : Object.fromEntries(namedNumbers(text));
}

/** Parameters with which models of any backend are scheduled. */
export const SCHEDULING_PARAMETERS: readonly string[] = [
  TARGET_LATENCY,
  DEADLINES,
  DEADLINE_DEFAULT,
  DEADLINE_BY_LEVEL,
  DEADLINE_BY_CALLER,
  SHARES,
  SHARE_WEIGHTS,
  PAD_INPUTS,
];

/** How callers share the model, as its configuration says; undefined if they do not. */
export function shareSetting(
  config: Pick<ModelConfig, "parameters">,
): { readonly by: string; readonly weights: Readonly<Record<string, number>> } | undefined {
  const by = sharedBy(config);
  if (by === undefined) return undefined;
  return { by, weights: shareWeights(config.parameters[SHARE_WEIGHTS]?.stringValue) };
}

/** Reads weights of callers: `a=2, b=1`. A weight that is not a number is NaN. */
export function shareWeights(text?: string): Readonly<Record<string, number>> {
  return Object.fromEntries(namedNumbers(text));
}

/**
 * Checks how callers share all models of a process.
 *
 * @throws TritonError INVALID_ARG for an unknown option, no way to tell callers apart, or a weight that is not above 0
 */
export function checkShares(shares: ShareOptions | undefined): void {
  if (shares === undefined) return;
  const problems = unknownOptions("shares", shares, SHARE_OPTION_TYPES);
  if (shares.by === undefined || shares.by === "") {
    problems.push("shares.by: expected 'caller', the name of a header or a function, got nothing");
  }
  for (const [caller, weight] of Object.entries(shares.weights ?? {})) {
    if (!(Number.isFinite(weight) && weight > 0))
      problems.push(`shares.weights of caller '${caller}': expected a number above 0, got ${weight}`);
  }
  if (problems.length > 0) throw errorFor("INVALID_OPTION", problems.join("; "));
}

/** A function stays with the batcher; the configuration shows the default header, which it is told. */
export function withShares(config: ModelConfig, shares: ShareOptions | undefined): ModelConfig {
  if (shares === undefined) return config;
  const { by, weights } = shares;
  const parameters = {
    ...config.parameters,
    [SHARES]: { stringValue: typeof by === "string" ? by : "caller" },
    ...namedParameter(SHARE_WEIGHTS, weights),
  };
  return { ...config, parameters };
}

export function shareProblems(config: ModelConfig): string[] {
  const setting = shareSetting(config);
  if (setting === undefined) return [];
  const { name } = config;
  const problems = Object.entries(setting.weights)
    .filter(([, weight]) => !(Number.isFinite(weight) && weight > 0))
    .map(
      ([caller, weight]) =>
        `share of caller '${caller}' of model '${name}': expected a weight above 0, got ${weight}`,
    );
  if (targetLatencyMs(config) !== undefined) {
    problems.push(`model '${name}' has shares and a target latency: leave one of them out`);
  }
  return problems;
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
