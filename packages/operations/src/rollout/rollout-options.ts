import type { ParameterTable, RequestInfo } from "@tritonjs/core/extension";
import { assertOptions, errorFor, optionTypes, type Parameters, type Tensor } from "@tritonjs/protocol";
import type { SavedSketch } from "./drift-sketch.js";
import { assertComparison, type OutputComparison } from "./output-agreement.js";
import type { VerdictLimits } from "./verdict.js";

/** The properties of a request by which a version is chosen. */
export interface RoutedRequest extends Pick<RequestInfo, "id" | "parameters" | "priority" | "correlationId"> {
  readonly inputs: ReadonlyMap<string, Tensor>;
}

/**
 * Where the key of a request is: in a header, in a parameter, or as a function returns it. Calls in process have no
 * headers; for them, `header:x` reads the parameter `x`.
 */
export type RolloutKey =
  | `header:${string}`
  | `parameter:${string}`
  | ((request: RoutedRequest) => string | number | bigint | undefined);

/** A step of a rollout: the share of the new version, and how long it stays. */
export interface RolloutStep {
  /** Percentage of the requests that the new version gets. */
  readonly share: number;
  readonly forSeconds: number;
  /**
   * Requests and copies that the new version has to answer in the step. Errors are answers; requests in flight are not.
   * @default 0
   */
  readonly minRequests?: number;
}

/** Copies of requests that the new version gets after the old one has answered. */
export interface ShadowOptions {
  /** Each request of this number gets a copy: 1 for all. @default 1 */
  readonly every?: number;
  /** Most copies in flight. @default 4 */
  readonly maxInFlight?: number;
  /**
   * Largest part of the time of the event loop that copies may take, for a model that runs on it: a percentage.
   * @default 5
   */
  readonly maxLoad?: number;
}

/** Comparisons of a rollout, and the bounds above which a difference is a fault. `false` turns a check off. */
export interface VerdictOptions {
  /** Probability of a false alarm, over all checks and the whole time. @default 0.01 */
  readonly alpha?: number;
  /** Errors of the new version: percentage points over those of the old one that are not a fault. @default 1 */
  readonly errors?: { readonly tolerance?: number } | false;
  /** Latency of the new version: how many times that of the old one is not a fault. @default 1.2 */
  readonly latency?:
    | {
        readonly ratio?: number;
        /** Class of a request; only requests of one class are compared. @default its priority and number of rows */
        readonly by?: (request: RoutedRequest) => string;
      }
    | false;
  /** Answers of shadows. */
  readonly agreement?:
    | {
        /**
         * How answers are compared, for all outputs or by output.
         * @default floating-point numbers within 1e-5 and a thousandth, all others equal
         */
        readonly by?: OutputComparison | Readonly<Record<string, OutputComparison>>;
        /** Percentage of the answers that have to agree, below 100. @default 99.9 */
        readonly atLeast?: number;
      }
    | false;
  /** Inputs that differ from those before. */
  readonly drift?:
    | {
        /** Population stability index from which inputs have drifted. @default 0.25 */
        readonly psi?: number;
        /** Kolmogorov-Smirnov distance from which inputs have drifted. @default 0.25 */
        readonly ks?: number;
        /** Requests of each comparison. @default 500 */
        readonly window?: number;
        /**
         * Reference of the comparison: that many first requests, or the `references` of an earlier rollout.
         * @default 1000
         */
        readonly reference?: number | Readonly<Record<string, SavedSketch>>;
        /** Names of the inputs. @default all */
        readonly inputs?: readonly string[];
      }
    | false;
  /** Consequence of a fault. @default "rollback" */
  readonly onFault?: "rollback" | "pause" | "report";
}

/** How a new version replaces an old one. */
export interface RolloutOptions {
  /** Version in use. @default the version that requests without a version get now */
  readonly from?: number;
  readonly to: number;
  /**
   * Repository of the model, for a server with `modelNamespacing` on which several repositories have the name: its path.
   * @default the only one
   */
  readonly namespace?: string;
  /** Percentage of the requests that the new version gets, from 0 to 100. @default that of the first step, else 0 */
  readonly share?: number;
  /** Shares over time. After the last step the new version is promoted, unless `promote` is "manual". */
  readonly steps?: readonly RolloutStep[];
  /** Action after the last step. @default "auto" */
  readonly promote?: "auto" | "manual";
  /** Requests with the same key get the same version. @default the sequence, if there is one; else chance */
  readonly key?: RolloutKey;
  readonly shadow?: ShadowOptions | boolean;
  readonly verdict?: VerdictOptions;
  /** Directory in which the state is kept, so that the rollout continues after a restart. @default none */
  readonly directory?: string;
  /** Start of the random numbers: equal seeds divide equal requests equally. @default chance */
  readonly seed?: number;
}

const TYPES = optionTypes<RolloutOptions>({
  from: "number",
  to: "number",
  share: "number",
  steps: "array",
  promote: "string",
  key: ["string", "function"],
  shadow: ["object", "boolean"],
  verdict: "object",
  directory: "string",
  namespace: "string",
  seed: "number",
});
const SHADOW_TYPES = optionTypes<ShadowOptions>({
  every: "number",
  maxInFlight: "number",
  maxLoad: "number",
});
const STEP_TYPES = optionTypes<RolloutStep>({
  share: "number",
  forSeconds: "number",
  minRequests: "number",
});
const VERDICT_TYPES = optionTypes<VerdictOptions>({
  alpha: "number",
  errors: ["object", "boolean"],
  latency: ["object", "boolean"],
  agreement: ["object", "boolean"],
  drift: ["object", "boolean"],
  onFault: "string",
});

/** Options of a rollout with their defaults. */
export interface ResolvedRollout {
  readonly from: number;
  readonly to: number;
  readonly share: number;
  readonly steps: readonly Required<RolloutStep>[];
  readonly promote: "auto" | "manual";
  readonly key: RolloutKey | undefined;
  readonly shadow: Required<ShadowOptions> | undefined;
  readonly limits: VerdictLimits;
  readonly classOf: ((request: RoutedRequest) => string) | undefined;
  readonly onFault: "rollback" | "pause" | "report";
  readonly seed: number;
}

/**
 * Checks the options of a rollout, and adds the defaults.
 *
 * @param current version that requests without a version get now
 * @throws TritonError INVALID_ARG for the first value that an option cannot have
 */
export function resolveRollout(
  model: string,
  options: RolloutOptions,
  current: number | undefined,
): ResolvedRollout {
  const where = `rollout of model '${model}'`;
  assertOptions(where, options, TYPES, undefined, ["to"]);
  const number = (name: string, value: number, low: number, high: number, what = "a number") => {
    if (Number.isFinite(value) && value >= low && value <= high) return value;
    const range = high === Number.POSITIVE_INFINITY ? `of at least ${low}` : `from ${low} to ${high}`;
    throw errorFor("INVALID_ROLLOUT", `${where}, option '${name}': expected ${what} ${range}, got ${value}`);
  };
  const integer = (name: string, value: number, low: number) => {
    if (Number.isSafeInteger(value) && value >= low) return value;
    throw errorFor(
      "INVALID_ROLLOUT",
      `${where}, option '${name}': expected an integer of at least ${low}, got ${value}`,
    );
  };
  const oneOf = <T extends string>(name: string, value: T, known: readonly T[]) => {
    if (known.includes(value)) return value;
    const list = known.map((one) => `"${one}"`).join(", ");
    throw errorFor("INVALID_ROLLOUT", `${where}, option '${name}': expected one of ${list}, got "${value}"`);
  };
  const from = options.from ?? current;
  if (from === undefined) {
    throw errorFor("INVALID_ROLLOUT", `${where}, option 'from': expected a version, got none in service`);
  }
  integer("from", from, 0);
  const to = integer("to", options.to, 0);
  if (from === to) {
    throw errorFor("INVALID_ROLLOUT", `${where}: expected two different versions, got ${to} as both`);
  }
  const steps = (options.steps ?? []).map((step, i) => {
    const name = `steps[${i}]`;
    assertOptions(`${where}, ${name}`, step, STEP_TYPES, undefined, ["share", "forSeconds"]);
    return {
      share: number(`${name}.share`, step.share, 0, 100, "a percentage"),
      forSeconds: number(`${name}.forSeconds`, step.forSeconds, 0, Number.POSITIVE_INFINITY),
      minRequests: integer(`${name}.minRequests`, step.minRequests ?? 0, 0),
    };
  });
  if (options.share !== undefined && steps.length > 0) {
    throw errorFor("INVALID_ROLLOUT", `${where} has a share and steps: leave one of them out`);
  }
  const { alpha = 0.01, errors = {}, latency = {}, agreement = {}, drift = {} } = options.verdict ?? {};
  assertOptions(`${where}, option 'verdict'`, options.verdict ?? {}, VERDICT_TYPES);
  for (const [name, value] of Object.entries({ errors, latency, agreement, drift })) {
    if ((value as unknown) !== true) continue;
    throw errorFor(
      "INVALID_ROLLOUT",
      `${where}, option 'verdict.${name}': expected an object or false, got true`,
    );
  }
  return {
    from,
    to,
    share: number("share", options.share ?? steps[0]?.share ?? 0, 0, 100, "a percentage"),
    steps,
    promote: oneOf("promote", options.promote ?? "auto", ["auto", "manual"]),
    key: keyOf(where, options.key),
    shadow: shadowOf(where, options.shadow, integer, number),
    limits: {
      alpha: alphaOf(where, alpha),
      errors:
        errors === false
          ? undefined
          : {
              tolerance:
                number("verdict.errors.tolerance", errors.tolerance ?? 1, 0, 100, "percentage points") / 100,
            },
      latency:
        latency === false
          ? undefined
          : {
              ratio: number("verdict.latency.ratio", latency.ratio ?? 1.2, 1, Number.POSITIVE_INFINITY),
            },
      agreement: agreement === false ? undefined : agreementOf(where, agreement, number),
      drift:
        drift === false
          ? undefined
          : {
              psi: number("verdict.drift.psi", drift.psi ?? 0.25, 0, Number.POSITIVE_INFINITY),
              ks: number("verdict.drift.ks", drift.ks ?? 0.25, 0, 1),
              window: integer("verdict.drift.window", drift.window ?? 500, 20),
              reference:
                typeof drift.reference === "object"
                  ? drift.reference
                  : integer("verdict.drift.reference", drift.reference ?? 1000, 20),
              inputs: drift.inputs,
            },
    },
    classOf: latency === false ? undefined : latency.by,
    onFault: oneOf("verdict.onFault", options.verdict?.onFault ?? "rollback", [
      "rollback",
      "pause",
      "report",
    ]),
    seed: options.seed ?? Math.floor(Math.random() * 2 ** 32),
  };
}

type CheckNumber = (name: string, value: number, low: number, high: number, what?: string) => number;

function alphaOf(where: string, alpha: number): number {
  if (alpha > 0 && alpha < 1) return alpha;
  throw errorFor(
    "INVALID_ROLLOUT",
    `${where}, option 'verdict.alpha': expected a number between 0 and 1, got ${alpha}`,
  );
}

function agreementOf(
  where: string,
  { by, atLeast = 99.9 }: Exclude<NonNullable<VerdictOptions["agreement"]>, false>,
  number: CheckNumber,
): VerdictLimits["agreement"] {
  const name = `${where}, option 'verdict.agreement.by'`;
  if (by !== undefined) {
    const isByOutput = typeof by === "object" && !("absolute" in by) && !("relative" in by);
    if (!isByOutput) assertComparison(name, by);
    else for (const [output, one] of Object.entries(by)) assertComparison(`${name}.${output}`, one);
  }
  number("verdict.agreement.atLeast", atLeast, 0, 99.9999, "a percentage");
  return { by, atLeast: atLeast / 100 };
}

function shadowOf(
  where: string,
  shadow: RolloutOptions["shadow"],
  integer: (name: string, value: number, low: number) => number,
  number: CheckNumber,
): Required<ShadowOptions> | undefined {
  if (shadow === undefined || shadow === false) return undefined;
  const { every = 1, maxInFlight = 4, maxLoad = 5 } = shadow === true ? {} : shadow;
  if (shadow !== true) assertOptions(`${where}, option 'shadow'`, shadow, SHADOW_TYPES);
  return {
    every: integer("shadow.every", every, 1),
    maxInFlight: integer("shadow.maxInFlight", maxInFlight, 1),
    maxLoad: number("shadow.maxLoad", maxLoad, 0, 100, "a percentage"),
  };
}

function keyOf(where: string, key: RolloutOptions["key"]): RolloutKey | undefined {
  if (key === undefined || typeof key === "function") return key;
  if (/^(header|parameter):./.test(key)) return key;
  throw errorFor(
    "INVALID_ROLLOUT",
    `${where}, option 'key': expected "header:<name>", "parameter:<name>" or a function, got "${key}"`,
  );
}

/** Beginning of the parameters of a model's configuration that have the options of its rollout: `rollout_to`. */
const PREFIX = "rollout_";

/** Parameters of configurations that a rollout reads, and what their texts name. */
export const ROLLOUT_PARAMETERS = {
  [`${PREFIX}*`]: "value",
  [`${PREFIX}directory`]: "write",
} as const satisfies ParameterTable;

/** The options of a rollout in the parameters of a model's configuration; undefined without `rollout_to`. */
export function rolloutOfConfig(
  parameters: Readonly<Record<string, { readonly stringValue?: string } | undefined>>,
): RolloutOptions | undefined {
  if (parameters[`${PREFIX}to`] === undefined) return undefined;
  const texts = Object.entries(parameters).filter(([name]) => name.startsWith(PREFIX));
  return rolloutOfTexts(
    texts.map(([name, value]) => [name.slice(PREFIX.length), value?.stringValue ?? ""] as const),
  );
}

/**
 * Reads the options of a rollout from texts: JSON where it is JSON, and the text itself elsewhere. Names may be in snake
 * case.
 */
export function rolloutOfTexts(texts: Iterable<readonly [name: string, text: string]>): RolloutOptions {
  const options: Record<string, unknown> = {};
  for (const [name, text] of texts) {
    const key = name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
    try {
      options[key] = JSON.parse(text);
    } catch {
      options[key] = text;
    }
  }
  return options as unknown as RolloutOptions;
}

/** The parameter of a shadow's request, which is true. */
const SHADOW_PARAMETER = "tritonjs_shadow";

/**
 * True for a copy of a request whose answer is compared and dropped. A callback with side effects leaves them out then.
 *
 * @example
 * ```ts
 * const inferFunc = (requests) =>
 *   requests.map((request) => {
 *     if (!isShadow(request)) orders.record(request.id);
 *     return { y: score(request.inputs) };
 *   });
 * ```
 */
export function isShadow(request: { readonly parameters: Parameters }): boolean {
  return request.parameters[SHADOW_PARAMETER] === true;
}

/** The parameters of a shadow of a request. */
export function shadowParameters(parameters: Parameters): Parameters {
  return { ...parameters, [SHADOW_PARAMETER]: true };
}
