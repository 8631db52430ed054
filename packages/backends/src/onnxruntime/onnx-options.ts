import { definedMembers, errorFor, keyList, type ModelConfig, optionTypes } from "@tritonjs/protocol";

/** An execution provider of ONNX Runtime: its name, or its name with options. */
export type ExecutionProvider = string | { readonly name: string; readonly [option: string]: unknown };

/**
 * How ONNX Runtime is called. `worker`: each instance is a thread or a process with a session of its own. `native`:
 * through ONNX Runtime's C interface in this process, with one session for all instances. `auto`: `native` where the
 * machine and the model allow it, else `worker`, with the reason in the log. `wasm`: as `worker`, with ONNX Runtime
 * compiled to WebAssembly.
 */
export type OnnxEngine = "worker" | "native" | "auto" | "wasm";

export const ONNX_ENGINES = keyList<Record<OnnxEngine, true>>({
  worker: true,
  native: true,
  auto: true,
  wasm: true,
});

/** Options of {@link onnxruntime}. */
export interface OnnxRuntimeOptions {
  /** Path of the `.onnx` file, or its bytes. */
  readonly model: string | URL | Uint8Array;
  /**
   * How ONNX Runtime is called. `native` needs the package `koffi`, the provider `cpu`, and instances without
   * `isolation`. `wasm` needs the package `onnxruntime-web`, and is used instead of `worker` where `onnxruntime-node`
   * cannot be loaded. @default "worker"
   */
  readonly engine?: OnnxEngine;
  /**
   * Providers in order of preference. A provider that cannot be used is skipped with a warning, and the next is tried.
   * The last resort is `cpu`.
   * @default ["cpu"]
   */
  readonly executionProviders?: readonly ExecutionProvider[];
  /** Fail instead of falling back to a provider further down the list. @default false */
  readonly strictProviders?: boolean;
  /**
   * Threads inside an operator. The default keeps sessions from competing for cores.
   * @default cores / instances, at least 1
   */
  readonly intraOpNumThreads?: number;
  /** Threads between operators. @default ONNX Runtime's */
  readonly interOpNumThreads?: number;
  /** Whether independent operators may run at the same time. @default "sequential" */
  readonly executionMode?: "sequential" | "parallel";
  /** Reuse the memory of past runs. @default true */
  readonly enableCpuMemArena?: boolean;
  /** Plan the memory of a run from the previous run. @default true */
  readonly enableMemPattern?: boolean;
  /** @default "all" */
  readonly graphOptimizationLevel?: "disabled" | "basic" | "extended" | "layout" | "all";
  /**
   * Entries of ONNX Runtime's session configuration by key, in addition to the options above.
   * @default { "session.intra_op.allow_spinning": "0" }
   */
  readonly sessionConfig?: Readonly<Record<string, string>>;
  /**
   * Least severity of the messages that ONNX Runtime writes to stderr: 0 for all, 2 for warnings, 4 for fatal errors
   * only.
   * @default 4, because errors are thrown
   */
  readonly logSeverityLevel?: 0 | 1 | 2 | 3 | 4;
  /** Called when a provider cannot be used. @default process.emitWarning */
  readonly onWarning?: (message: string) => void;
}

export const ONNX_OPTION_TYPES = optionTypes<OnnxRuntimeOptions>({
  model: ["object", "string"],
  engine: "string",
  executionProviders: "array",
  strictProviders: "boolean",
  intraOpNumThreads: "number",
  interOpNumThreads: "number",
  executionMode: "string",
  enableCpuMemArena: "boolean",
  enableMemPattern: "boolean",
  graphOptimizationLevel: "string",
  sessionConfig: "object",
  logSeverityLevel: "number",
  onWarning: "function",
});

/** The data that a worker needs to open its session. It survives structured cloning. */
export interface SessionData {
  /** True for WebAssembly, even if `onnxruntime-node` can be loaded. */
  readonly isWasm?: boolean;
  readonly model: string | Uint8Array;
  readonly providers: readonly ExecutionProvider[];
  readonly strict: boolean;
  readonly sessionOptions: Readonly<Record<string, unknown>>;
  /** Inputs that have no dimensions in the model's file. */
  readonly scalars: readonly string[];
  /** Inputs whose rank the model's file leaves open. */
  readonly ranksUnknown: readonly string[];
}

export function quoted(names: readonly string[]): string {
  return names.map((name) => `'${name}'`).join(", ");
}

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
export function onnxOptionsOf(
  config: ModelConfig,
  settings: Readonly<Record<string, string>>,
  warn: (message: string) => void,
): Omit<OnnxRuntimeOptions, "model"> {
  const mode = executionMode(config);
  const intra = count(config, "intra_op_thread_count", settings);
  const inter = count(config, "inter_op_thread_count", settings);
  const options = definedMembers({
    graphOptimizationLevel: LEVELS.get(config.optimization?.graph?.level ?? 0) ?? ("all" as const),
    executionMode: mode,
    intraOpNumThreads: intra > 0 ? intra : undefined,
    interOpNumThreads: inter > 0 ? inter : undefined,
    strictProviders: flag(config, "strict_execution_providers"),
    enableCpuMemArena: flag(config, "enable_mem_arena"),
    enableMemPattern: flag(config, "enable_mem_pattern"),
    executionProviders: accelerators(config, warn),
    sessionConfig: sessionConfig(config),
    logSeverityLevel: severityLevel(config),
    // The backend checks it.
    engine: (config.parameters.engine?.stringValue ?? settings.engine) as OnnxEngine | undefined,
  });
  warnOfUnused(config, settings, warn);
  return options;
}

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
  throw errorFor("INVALID_CONFIG", "parameter 'log_severity_level': expected a number from 0 to 4");
}

const LEVELS_OF_SEVERITY = [0, 1, 2, 3, 4] as const;

function executionMode(config: ModelConfig): "sequential" | "parallel" {
  const mode = count(config, "execution_mode");
  if (mode === 0) return "sequential";
  if (mode === 1) return "parallel";
  const text = `Invalid configuration value provided. Expected values for  execution_mode are 0 or 1 but got ${mode} .`;
  throw errorFor("INVALID_CONFIG", text);
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
  throw errorFor("INVALID_CONFIG", `failed to convert '${text}' to integral number`);
}

function flag({ parameters }: ModelConfig, key: string): boolean | undefined {
  const text = parameters[key]?.stringValue;
  if (text === undefined) return undefined;
  if (/^(true|on|1)$/i.test(text)) return true;
  if (/^(false|off|0)$/i.test(text)) return false;
  throw errorFor("INVALID_CONFIG", `failed to convert '${text}' to boolean`);
}

/** The only options that onnxruntime-node passes on to WebGPU. */
const WEBGPU = [
  "preferredLayout",
  "validationMode",
  "storageBufferCacheMode",
  "uniformBufferCacheMode",
  "queryResolveBufferCacheMode",
  "defaultBufferCacheMode",
];

/** Allowed providers, with the options that onnxruntime-node passes on to them. */
const PROVIDERS: Readonly<Record<string, readonly string[]>> = {
  tensorrt: [],
  cuda: [],
  webgpu: WEBGPU,
  dml: [],
  coreml: [],
  qnn: ["backendType", "backendPath"],
  xnnpack: [],
  openvino: [],
  cpu: [],
};

/**
 * The providers that `optimization.execution_accelerators` requests, by ONNX Runtime's names. GPU providers come before
 * CPU providers; the plain device is last.
 *
 * @param warn called with a warning for each option that has no effect here
 * @returns undefined when none is requested
 * @throws TritonError INVALID_ARG for an unknown provider or parameter, with Triton's text
 */
function accelerators(
  { name: model, optimization, instanceGroup }: ModelConfig,
  warn: (message: string) => void,
): ExecutionProvider[] | undefined {
  const { gpuExecutionAccelerator: gpu = [], cpuExecutionAccelerator: cpu = [] } =
    optimization?.executionAccelerators ?? {};
  const onGpu = instanceGroup.some(({ kind }) => kind === "KIND_GPU" || kind === "KIND_MODEL");
  const asked = [...(onGpu ? gpu : []), ...cpu];
  if (asked.length === 0) return undefined;
  const providers = asked.map(({ name, parameters = {} }): ExecutionProvider => {
    const options = Object.hasOwn(PROVIDERS, name) ? PROVIDERS[name] : undefined;
    if (options === undefined) {
      throw errorFor("INVALID_CONFIG", `unknown Execution Accelerator '${name}' is requested`);
    }
    if (name === "tensorrt") checkTensorrtParameters(parameters);
    const unused = Object.keys(parameters).filter((key) => !options.includes(key));
    if (unused.length > 0) {
      warn(
        `model '${model}': onnxruntime-node does not pass ${quoted(unused)} to execution provider '${name}'`,
      );
    }
    const used = Object.entries(parameters).filter(([key]) => options.includes(key));
    return used.length === 0 ? name : { name, ...Object.fromEntries(used) };
  });
  return [...providers, ...(onGpu ? ["cuda"] : []), "cpu"];
}

const PARAMETERS: ReadonlySet<string> = new Set([
  "precision_mode",
  "max_workspace_size_bytes",
  "int8_calibration_table_name",
  "int8_use_native_calibration_table",
  "trt_max_partition_iterations",
  "trt_min_subgraph_size",
  "trt_dla_enable",
  "trt_dla_core",
  "trt_engine_cache_enable",
  "trt_engine_cache_path",
  "trt_engine_cache_prefix",
  "trt_dump_subgraphs",
  "trt_force_sequential_engine_build",
  "trt_context_memory_sharing_enable",
  "trt_layer_norm_fp32_fallback",
  "trt_timing_cache_enable",
  "trt_timing_cache_path",
  "trt_force_timing_cache",
  "trt_detailed_build_log",
  "trt_build_heuristics_enable",
  "trt_sparsity_enable",
  "trt_builder_optimization_level",
  "trt_auxiliary_streams",
  "trt_tactic_sources",
  "trt_extra_plugin_lib_paths",
  "trt_profile_min_shapes",
  "trt_profile_max_shapes",
  "trt_profile_opt_shapes",
  "trt_cuda_graph_enable",
  "trt_dump_ep_context_model",
  "trt_ep_context_file_path",
  "trt_ep_context_embed_mode",
]);

const PRECISIONS: readonly string[] = ["FP32", "FP16", "BF16", "INT8"];

/** @throws TritonError INVALID_ARG for parameters that Triton's onnxruntime backend rejects, with its text */
function checkTensorrtParameters(parameters: Readonly<Record<string, string>>): void {
  for (const [key, value] of Object.entries(parameters)) {
    if (!PARAMETERS.has(key)) {
      const text = `unknown parameter '${key}' is provided for TensorRT Execution Accelerator`;
      throw errorFor("INVALID_CONFIG", text);
    }
    if (key === "precision_mode" && !PRECISIONS.includes(value)) {
      throw errorFor("INVALID_CONFIG", `unsupported precision mode '${value}' is requested`);
    }
  }
}

/** Parameters of Triton's onnxruntime backend whose options onnxruntime-node does not pass on. */
const NO_EFFECT = [
  "cudnn_conv_algo_search",
  "gpu_mem_limit",
  "arena_extend_strategy",
  "do_copy_in_default_stream",
  "use_tf32",
  "memory.enable_memory_arena_shrinkage",
];

/** Number of choices of each parameter whose value is the number of a choice. */
const CHOICES: Readonly<Record<string, number>> = { cudnn_conv_algo_search: 3, arena_extend_strategy: 2 };

/**
 * Warns of parameters and settings that set options in Triton and have no effect here.
 *
 * @throws TritonError INVALID_ARG for values that Triton rejects, for instances on a GPU: Triton reads the values only
 * there
 */
function warnOfUnused(
  { name, parameters, instanceGroup }: ModelConfig,
  settings: Readonly<Record<string, string>>,
  warn: (message: string) => void,
): void {
  if (instanceGroup.some(({ kind }) => kind === "KIND_GPU")) {
    for (const [key, count] of Object.entries(CHOICES)) {
      const value = parameters[key]?.stringValue;
      if (value === undefined || (/^\s*\d+$/.test(value) && Number(value) < count)) continue;
      throw errorFor("INVALID_CONFIG", `unsupported ${key} value '${value}' is requested`);
    }
  }
  const unused = NO_EFFECT.filter((key) => Object.hasOwn(parameters, key));
  if (unused.length > 0) {
    const why = "onnxruntime-node does not pass them on";
    warn(`model '${name}': parameters ${quoted(unused)} have no effect: ${why}`);
  }
  if (settings["enable-global-threadpool"] === "1") {
    warn(
      `model '${name}': the setting 'enable-global-threadpool' has no effect: sessions of onnxruntime-node have threads ` +
        "of their own; set 'intra_op_thread_count'",
    );
  }
}
