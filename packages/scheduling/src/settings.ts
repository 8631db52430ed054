import { namedNumbers } from "@tritonjs/core/extension";
import type { Parameters } from "@tritonjs/protocol";
import { isDecoupled, type ModelConfig, TritonError, unknownOptions } from "@tritonjs/protocol";

/** Properties of a request by which its share is found. */
export interface ShareRequest {
  readonly id: string;
  readonly priority: number;
  readonly parameters: Parameters;
  /** Name in the header of the client, or an empty string. */
  readonly caller: string;
}

/** How callers share a model, or all models of a server. */
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

/** Time that requests leave for their answers. */
export interface LimitOptions {
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
  /**
   * Latency target, in milliseconds: a default deadline, within which batches wait for further requests. Replaces
   * `defaultMs`, `maxQueueDelayMicroseconds` and `preferredBatchSize`.
   * @default none: batches form by these options
   */
  readonly targetLatencyMs?: number;
}

/** Limits of requests that bring none, in milliseconds. `defaultMs` is 0 for no default. */
export interface DefaultLimits {
  readonly defaultMs: number;
  readonly levelMs: ReadonlyMap<number, number>;
  readonly callerMs: ReadonlyMap<string, number>;
}

/** The settings of a model: what its parameters say, and a function that names callers. */
export interface BatcherSettings {
  /** Undefined if requests run by shares alone. */
  readonly limits: DefaultLimits | undefined;
  readonly targetMs: number | undefined;
  readonly shares: ShareOptions | undefined;
  /** True if callers share all models together. */
  readonly isCommon: boolean;
}

/** Parameters of a configuration. Triton has no fields for these settings. */
const NAMES = {
  deadlines: "deadlines",
  defaultMs: "deadline_default_ms",
  levelMs: "deadline_level_ms",
  callerMs: "deadline_caller_ms",
  targetMs: "target_latency_ms",
  by: "shares_by",
  weights: "shares_weights",
  common: "shares_common",
} as const;

/** Names of the parameters that the package reads. */
export const PARAMETERS: readonly string[] = Object.values(NAMES);

/** Parameters as texts, by name. */
export type Texts = Readonly<Record<string, string>>;

const BOOLEANS: Readonly<Record<string, boolean>> = { true: true, "1": true, false: false, "0": false };

export function textsOf({ parameters }: Pick<ModelConfig, "parameters">): Texts {
  const known = PARAMETERS.filter((name) => parameters[name] !== undefined);
  return Object.fromEntries(known.map((name) => [name, parameters[name]!.stringValue]));
}

/** True if parameters ask for a batcher of this package, even with a faulty value. */
export function asksForBatcher(texts: Texts): boolean {
  const on = texts[NAMES.deadlines];
  const hasDeadlines = on !== undefined && BOOLEANS[on] !== false;
  return hasDeadlines || texts[NAMES.targetMs] !== undefined || (texts[NAMES.by] ?? "") !== "";
}

/** The parameters that limits and shares are. */
export function settingTexts(
  limits: LimitOptions | undefined,
  shares?: ShareOptions,
  isCommon = false,
): Texts {
  const texts: Record<string, string> = {};
  if (limits !== undefined) {
    const { defaultMs, levelMs, callerMs, targetLatencyMs } = limits;
    if (targetLatencyMs === undefined) texts[NAMES.deadlines] = "true";
    else texts[NAMES.targetMs] = String(targetLatencyMs);
    if (defaultMs !== undefined) texts[NAMES.defaultMs] = String(defaultMs);
    addPairs(texts, NAMES.levelMs, levelMs);
    addPairs(texts, NAMES.callerMs, callerMs);
  }
  if (shares !== undefined) {
    // The configuration shows the default header in place of a function.
    texts[NAMES.by] = typeof shares.by === "string" ? shares.by : "caller";
    addPairs(texts, NAMES.weights, shares.weights);
    if (isCommon) texts[NAMES.common] = "true";
  }
  return texts;
}

/** @param by names callers by a function, in place of the parameter */
export function schedulingSettings(texts: Texts, by?: ShareOptions["by"]): BatcherSettings {
  const target = texts[NAMES.targetMs];
  const targetMs = target === undefined ? undefined : Number(target);
  const isDated = targetMs !== undefined || BOOLEANS[texts[NAMES.deadlines] ?? ""] === true;
  const named = texts[NAMES.by];
  return {
    limits: isDated
      ? {
          defaultMs: targetMs ?? Number(texts[NAMES.defaultMs] ?? 0),
          levelMs: new Map([...namedNumbers(texts[NAMES.levelMs])].map(([level, ms]) => [Number(level), ms])),
          callerMs: namedNumbers(texts[NAMES.callerMs]),
        }
      : undefined,
    targetMs,
    shares: named ? { by: by ?? named, weights: readWeights(texts[NAMES.weights]) } : undefined,
    isCommon: texts[NAMES.common] === "true",
  };
}

/** Lists problems with the settings of a model. */
export function settingsProblems(texts: Texts, config: ModelConfig): string[] {
  const { name } = config;
  const on = texts[NAMES.deadlines];
  if (on !== undefined && BOOLEANS[on] === undefined) {
    return [`parameter '${NAMES.deadlines}' of model '${name}': expected true or false, got '${on}'`];
  }
  const unpaired = [
    ...pairProblems(name, NAMES.levelMs, texts, "1=50"),
    ...pairProblems(name, NAMES.callerMs, texts, "gold=100"),
  ];
  if (unpaired.length > 0) return unpaired;
  const { limits, targetMs, shares } = schedulingSettings(texts);
  const problems: string[] = [];
  const isTime = (ms: number) => ms > 0 && ms < Number.POSITIVE_INFINITY;
  if (targetMs !== undefined) problems.push(...targetProblems(targetMs, texts, config));
  const defaultMs = texts[NAMES.defaultMs];
  if (limits !== undefined && defaultMs !== undefined && !isTime(Number(defaultMs))) {
    problems.push(
      `default deadline of model '${name}': expected a number of milliseconds above 0, got ${defaultMs}`,
    );
  }
  for (const [level, ms] of limits?.levelMs ?? []) {
    if (Number.isSafeInteger(level) && level > 0 && isTime(ms)) continue;
    problems.push(
      `default deadline by level of model '${name}': expected levels from 1 on with milliseconds above 0, got ` +
        `${level}=${ms}`,
    );
  }
  for (const [caller, ms] of limits?.callerMs ?? []) {
    if (isTime(ms)) continue;
    problems.push(
      `default deadline of caller '${caller}' of model '${name}': expected a number of milliseconds above 0, got ${ms}`,
    );
  }
  for (const [caller, weight] of Object.entries(shares?.weights ?? {})) {
    if (isTime(weight)) continue;
    problems.push(`share of caller '${caller}' of model '${name}': expected a weight above 0, got ${weight}`);
  }
  return problems;
}

function targetProblems(targetMs: number, texts: Texts, config: ModelConfig): string[] {
  const { name, dynamicBatching } = config;
  const problems: string[] = [];
  if (!Number.isFinite(targetMs) || targetMs <= 0) {
    problems.push(
      `target latency of model '${name}': expected a number of milliseconds above 0, got ${targetMs}`,
    );
  }
  if (dynamicBatching === undefined) {
    problems.push(`model '${name}' has a target latency without the dynamic batcher: set dynamic_batching`);
  }
  if (isDecoupled(config)) {
    problems.push(
      `model '${name}' has a target latency and the 'decoupled' transaction policy: it can have one of them`,
    );
  }
  if (texts[NAMES.defaultMs] !== undefined) {
    problems.push(
      `model '${name}' has a target latency and a default deadline, which are the same: leave one of them out`,
    );
  }
  return problems;
}

/**
 * Checks how callers share all models of a server.
 *
 * @throws TritonError INVALID_ARG for an unknown option, no way to tell callers apart, or a weight that is not above 0
 */
export function checkShares(shares: ShareOptions): void {
  const problems = unknownOptions("shares", shares, { by: "any", weights: "any" });
  if (shares.by === undefined || shares.by === "") {
    problems.push("shares.by: expected 'caller', the name of a header or a function, got nothing");
  }
  for (const [caller, weight] of Object.entries(shares.weights ?? {})) {
    if (!(Number.isFinite(weight) && weight > 0))
      problems.push(`shares.weights of caller '${caller}': expected a number above 0, got ${weight}`);
  }
  if (problems.length > 0) throw new TritonError("INVALID_ARG", problems.join("; "));
}

/** Reads weights of callers, such as `gold=3, free=1`. A weight that is not a number is NaN. */
export function readWeights(text?: string): Readonly<Record<string, number>> {
  return Object.fromEntries(namedNumbers(text));
}

/** Problems of a parameter that `namedNumbers` reads: parts that are not pairs. */
function pairProblems(model: string, parameter: string, texts: Texts, example: string): string[] {
  return (texts[parameter] ?? "")
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "" && !part.includes("="))
    .map(
      (part) =>
        `parameter '${parameter}' of model '${model}': expected pairs such as ${example}, got '${part}'`,
    );
}

function addPairs(
  texts: Record<string, string>,
  parameter: string,
  numbers: Readonly<Record<string, number>> = {},
): void {
  const all = Object.entries(numbers).map(([name, number]) => `${name}=${number}`);
  if (all.length > 0) texts[parameter] = all.join(", ");
}
