import type { ModelConfig } from "../../config/model-config.js";
import { TritonError } from "../../errors/triton-error.js";
import type { ExecutionProvider, OnnxRuntimeOptions } from "./options.js";

/**
 * Options of ONNX Runtime that a model's configuration asks for: `optimization.graph.level`, its execution
 * accelerators, and the parameters `intra_op_thread_count`, `inter_op_thread_count`, `execution_mode`,
 * `enable_mem_arena` and `enable_mem_pattern`.
 *
 * @throws TritonError INVALID_ARG for a value that cannot be.
 */
export function optionsOf(config: ModelConfig): Omit<OnnxRuntimeOptions, "model"> {
  const intra = count(config, "intra_op_thread_count");
  const inter = count(config, "inter_op_thread_count");
  const arena = flag(config, "enable_mem_arena");
  const pattern = flag(config, "enable_mem_pattern");
  const providers = accelerators(config);
  return {
    graphOptimizationLevel: LEVELS.get(config.optimization?.graph?.level ?? 0) ?? "all",
    executionMode: executionMode(config),
    ...(intra > 0 ? { intraOpNumThreads: intra } : {}),
    ...(inter > 0 ? { interOpNumThreads: inter } : {}),
    ...(arena === undefined ? {} : { enableCpuMemArena: arena }),
    ...(pattern === undefined ? {} : { enableMemPattern: pattern }),
    ...(providers === undefined ? {} : { executionProviders: providers }),
  };
}

/** Triton's graph levels; all others are everything that there is. */
const LEVELS: ReadonlyMap<number, "basic" | "extended" | "disabled"> = new Map([
  [-1, "basic"],
  [1, "extended"],
  [2, "disabled"],
]);

/** Triton's accelerators by ONNX Runtime's names; those of GPUs before those of the CPU, the plain device last. */
function accelerators({ optimization, instanceGroup }: ModelConfig): ExecutionProvider[] | undefined {
  const { gpuExecutionAccelerator: gpu = [], cpuExecutionAccelerator: cpu = [] } =
    optimization?.executionAccelerators ?? {};
  const onGpu = instanceGroup.some(({ kind }) => kind === "KIND_GPU" || kind === "KIND_MODEL");
  const asked = [...(onGpu ? gpu : []), ...cpu];
  if (asked.length === 0) return undefined;
  return [
    ...asked.map(({ name, parameters }) => ({ name, ...parameters })),
    ...(onGpu ? ["cuda"] : []),
    "cpu",
  ];
}

function executionMode(config: ModelConfig): "sequential" | "parallel" {
  const mode = count(config, "execution_mode");
  if (mode === 0) return "sequential";
  if (mode === 1) return "parallel";
  throw new TritonError(
    "INVALID_ARG",
    `Invalid configuration value provided. Expected values for  execution_mode are 0 or 1 but got ${mode} .`,
  );
}

function count({ parameters, name }: ModelConfig, key: string): number {
  const text = parameters[key]?.stringValue;
  if (text === undefined) return 0;
  const value = Number(text);
  if (/^\d+$/.test(text) && Number.isSafeInteger(value)) return value;
  throw new TritonError(
    "INVALID_ARG",
    `parameter '${key}' of model '${name}' must be a whole number of at least 0, got '${text}'`,
  );
}

function flag({ parameters, name }: ModelConfig, key: string): boolean | undefined {
  const text = parameters[key]?.stringValue.toLowerCase();
  if (text === undefined) return undefined;
  if (text === "true" || text === "1") return true;
  if (text === "false" || text === "0") return false;
  throw new TritonError(
    "INVALID_ARG",
    `parameter '${key}' of model '${name}' must be true or false, got '${text}'`,
  );
}
