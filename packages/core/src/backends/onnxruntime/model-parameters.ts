import { type ModelConfig, TritonError } from "@tritonjs/protocol";

import { accelerators } from "./accelerators.js";
import { warnOfUnused } from "./ignored-parameters.js";
import type { OnnxEngine, OnnxRuntimeOptions } from "./options.js";

/**
 * Reads the options of ONNX Runtime from a model's configuration: `optimization.graph.level`, its execution
 * accelerators, and the parameters `intra_op_thread_count`, `inter_op_thread_count`, `execution_mode`,
 * `enable_mem_arena` and `enable_mem_pattern`. Parameters that begin with `session.`, `optimization.` or `mlas.` are
 * entries of ONNX Runtime's session configuration. Our own are `engine`, `strict_execution_providers` and
 * `log_severity_level`.
 *
 * @param settings of the backend; they may hold thread counts for all models
 * @throws TritonError INVALID_ARG for an invalid value.
 */
export function optionsOf(
  config: ModelConfig,
  settings: Readonly<Record<string, string>>,
  warn: (message: string) => void,
): Omit<OnnxRuntimeOptions, "model"> {
  const mode = executionMode(config);
  const intra = count(config, "intra_op_thread_count", settings);
  const inter = count(config, "inter_op_thread_count", settings);
  const strict = flag(config, "strict_execution_providers");
  const arena = flag(config, "enable_mem_arena");
  const pattern = flag(config, "enable_mem_pattern");
  const providers = accelerators(config, warn);
  const entries = sessionConfig(config);
  const severity = severityLevel(config);
  const engine = config.parameters.engine?.stringValue ?? settings.engine;
  warnOfUnused(config, settings, warn);
  return {
    graphOptimizationLevel: LEVELS.get(config.optimization?.graph?.level ?? 0) ?? "all",
    executionMode: mode,
    ...(intra > 0 ? { intraOpNumThreads: intra } : {}),
    ...(inter > 0 ? { interOpNumThreads: inter } : {}),
    ...(arena === undefined ? {} : { enableCpuMemArena: arena }),
    ...(pattern === undefined ? {} : { enableMemPattern: pattern }),
    ...(strict === undefined ? {} : { strictProviders: strict }),
    ...(providers === undefined ? {} : { executionProviders: providers }),
    ...(entries === undefined ? {} : { sessionConfig: entries }),
    ...(severity === undefined ? {} : { logSeverityLevel: severity }),
    // The backend checks it.
    ...(engine === undefined ? {} : { engine: engine as OnnxEngine }),
  };
}

/** Triton's graph levels. Any other level enables all optimizations. */
const LEVELS: ReadonlyMap<number, "basic" | "extended" | "disabled"> = new Map([
  [-1, "basic"],
  [1, "extended"],
  [2, "disabled"],
]);

function sessionConfig({ parameters }: ModelConfig): Readonly<Record<string, string>> | undefined {
  const entries = Object.entries(parameters).filter(([key]) => /^(session|optimization|mlas)\./.test(key));
  if (entries.length === 0) return undefined;
  return Object.fromEntries(entries.map(([key, { stringValue }]) => [key, stringValue]));
}

function severityLevel(config: ModelConfig): OnnxRuntimeOptions["logSeverityLevel"] {
  if (config.parameters.log_severity_level === undefined) return undefined;
  const level = LEVELS_OF_SEVERITY.find((one) => one === count(config, "log_severity_level"));
  if (level !== undefined) return level;
  throw new TritonError("INVALID_ARG", "parameter 'log_severity_level': expected a number from 0 to 4", {
    reason: "INVALID_CONFIG",
  });
}

const LEVELS_OF_SEVERITY = [0, 1, 2, 3, 4] as const;

function executionMode(config: ModelConfig): "sequential" | "parallel" {
  const mode = count(config, "execution_mode");
  if (mode === 0) return "sequential";
  if (mode === 1) return "parallel";
  throw new TritonError(
    "INVALID_ARG",
    `Invalid configuration value provided. Expected values for  execution_mode are 0 or 1 but got ${mode} .`,
    { reason: "INVALID_CONFIG" },
  );
}

/** A number as C++ reads it. Triton ignores values below 0. */
function count(
  { parameters }: ModelConfig,
  key: string,
  settings: Readonly<Record<string, string>> = {},
): number {
  const text = parameters[key]?.stringValue ?? settings[key] ?? "0";
  const value = Number(text);
  if (/^\s*[+-]?\d+$/.test(text) && Number.isSafeInteger(value)) return value;
  throw new TritonError("INVALID_ARG", `failed to convert '${text}' to integral number`, {
    reason: "INVALID_CONFIG",
  });
}

function flag({ parameters }: ModelConfig, key: string): boolean | undefined {
  const text = parameters[key]?.stringValue;
  if (text === undefined) return undefined;
  if (/^(true|on|1)$/i.test(text)) return true;
  if (/^(false|off|0)$/i.test(text)) return false;
  throw new TritonError("INVALID_ARG", `failed to convert '${text}' to boolean`, {
    reason: "INVALID_CONFIG",
  });
}
