import type { ParameterTable, TenantModel } from "@tritonjs/core/extension";
import { errorFor, type ModelConfig, type TritonError } from "@tritonjs/protocol";

/** Options of `modelsOnDemand`: which models are in memory. Other models stay on disk until a request comes. */
export interface OnDemandOptions {
  /** Whether models load at their first request, not at the start. Models that are loaded by name load at once. @default false */
  readonly loadOnDemand?: boolean;
  /** Seconds without a request after which a model leaves memory until the next request. @default never */
  readonly modelTtlSecs?: number;
  /**
   * Megabytes (2^20 bytes) that models may take together. A model that needs room replaces idle ones of the least value,
   * which is their rate of requests times the duration of their load, for each byte. @default no limit
   */
  readonly modelMemoryBudgetMb?: number;
}

export const MB = 2 ** 20;

/** Settings of one model: parameters of its configuration, which take precedence over the options. */
export interface TenantSettings {
  readonly onDemand: boolean;
  readonly ttlMs: number;
  /** Bytes as the configuration gives them. */
  readonly bytes: number | undefined;
  /** True for a model that stays in memory once it is there. */
  readonly keeps: boolean;
}

/** Parameters of a configuration that say when its model is in memory. */
export const ON_DEMAND_PARAMETERS = {
  load_on_demand: "value",
  ttl_seconds: "value",
  memory_mb: "value",
  keep_loaded: "value",
} as const satisfies ParameterTable;

type OnDemandParameter = keyof typeof ON_DEMAND_PARAMETERS;

/** The options and the parameters of configurations, read. */
export class OnDemandSettings {
  readonly budgetBytes: number;

  /** @throws TritonError INVALID_ARG for numbers that are not above 0 */
  constructor(private readonly options: OnDemandOptions) {
    const { modelTtlSecs, modelMemoryBudgetMb } = options;
    for (const [name, value] of Object.entries({ modelTtlSecs, modelMemoryBudgetMb })) {
      if (value === undefined || (Number.isFinite(value) && value > 0)) continue;
      throw errorFor(
        "INVALID_OPTION",
        `modelsOnDemand(), option '${name}': expected a number above 0, got ${value}`,
      );
    }
    this.budgetBytes =
      modelMemoryBudgetMb === undefined ? Number.POSITIVE_INFINITY : modelMemoryBudgetMb * MB;
  }

  /** Whether a model loads at its first request; undefined if neither its configuration nor the options say so. */
  onDemand({ name, parameters }: ModelConfig): boolean | undefined {
    return flagOf(name, parameters, "load_on_demand") ?? (this.options.loadOnDemand || undefined);
  }

  /**
   * The settings of a model; undefined for one that is always in memory.
   *
   * @throws TritonError INVALID_ARG for parameters of its configuration that are not valid
   */
  of({ name, config, directory }: TenantModel): TenantSettings | undefined {
    const { loadOnDemand = false, modelTtlSecs, modelMemoryBudgetMb } = this.options;
    const { parameters } = config;
    const isOwn = Object.keys(ON_DEMAND_PARAMETERS).some((key) => parameters[key] !== undefined);
    const byServer = loadOnDemand || modelTtlSecs !== undefined || modelMemoryBudgetMb !== undefined;
    if (config.ensembleScheduling !== undefined || !(isOwn || (byServer && directory !== undefined))) {
      return undefined;
    }
    const numberOf = (key: OnDemandParameter) => {
      const text = parameters[key]?.stringValue.trim();
      if (text === undefined) return undefined;
      const value = Number(text);
      if (text !== "" && Number.isFinite(value) && value > 0) return value;
      throw parameterError(name, key, "a number above 0", text);
    };
    const ttl = numberOf("ttl_seconds") ?? modelTtlSecs;
    const memory = numberOf("memory_mb");
    return {
      onDemand: this.onDemand(config) ?? false,
      ttlMs: ttl === undefined ? Number.POSITIVE_INFINITY : ttl * 1000,
      bytes: memory === undefined ? undefined : memory * MB,
      keeps: flagOf(name, parameters, "keep_loaded") ?? false,
    };
  }
}

function flagOf(
  model: string,
  parameters: ModelConfig["parameters"],
  key: OnDemandParameter,
): boolean | undefined {
  const text = parameters[key]?.stringValue.trim();
  if (text === undefined) return undefined;
  if (text === "true" || text === "false") return text === "true";
  throw parameterError(model, key, "'true' or 'false'", text);
}

function parameterError(model: string, key: string, expected: string, got: string): TritonError {
  return errorFor(
    "INVALID_CONFIG",
    `parameter '${key}' of model '${model}': expected ${expected}, got '${got}'`,
  );
}
