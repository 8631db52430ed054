import { definedMembers, errorFor, keyList, type ModelConfig, optionTypes } from "@tritonjs/protocol";
import { graphSpecs } from "./cuda-graphs.js";
import type { GlobalThreads } from "./native/ort-c-api.js";
import { CUDA_PARAMETERS, ONNX_PARAMETERS, SHRINKAGE } from "./onnx-parameters.js";
import { canonicalName, type ExecutionProvider, isKnownProvider } from "./provider-names.js";

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
   * How ONNX Runtime is called. `native` needs the package `koffi` and instances without `isolation`. `wasm` needs the
   * package `onnxruntime-web`, and is used instead of `worker` where `onnxruntime-node` cannot be loaded.
   * @default "native" for models that only it can serve: with `library`, `providerLibraries`, `runConfig`, or options
   * of a provider that onnxruntime-node does not pass on; else "worker"
   */
  readonly engine?: OnnxEngine;
  /**
   * Path of the library of ONNX Runtime, for the engine `native`. Models may have different libraries.
   * @default the variable `ORT_DYLIB_PATH`, else the library of onnxruntime-node, of the system, or of Python's package
   * onnxruntime; on a GPU, the first that has the provider's files
   */
  readonly library?: string;
  /**
   * Providers in order of preference. A provider that cannot be used is skipped with a warning, and the next is tried.
   * The last resort is `cpu`.
   * @default ["cpu"]
   */
  readonly executionProviders?: readonly ExecutionProvider[];
  /**
   * Libraries of plug-in providers by the name of their registration, for ONNX Runtime 1.22 or newer. Their providers
   * can then be named in `executionProviders`.
   */
  readonly providerLibraries?: Readonly<Record<string, string>>;
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
  /** Entries of ONNX Runtime's configuration of a run by key: `memory.enable_memory_arena_shrinkage`. */
  readonly runConfig?: Readonly<Record<string, string>>;
  /**
   * Sizes of the thread pools that all sessions of a library share; 0 is ONNX Runtime's default. The first model of the
   * library makes them.
   * @default each session has threads of its own
   */
  readonly globalThreads?: GlobalThreads;
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
  library: "string",
  executionProviders: "array",
  providerLibraries: "object",
  strictProviders: "boolean",
  intraOpNumThreads: "number",
  interOpNumThreads: "number",
  executionMode: "string",
  enableCpuMemArena: "boolean",
  enableMemPattern: "boolean",
  graphOptimizationLevel: "string",
  sessionConfig: "object",
  runConfig: "object",
  globalThreads: "object",
  logSeverityLevel: "number",
  onWarning: "function",
});

/** The data that a worker needs to open its session. It survives structured cloning. */
export interface SessionData {
  /** True for WebAssembly, even if `onnxruntime-node` can be loaded. */
  readonly isWasm?: boolean;
  readonly model: string | Uint8Array;
  /** Bytes of the model if they differ from those of `model`, whose folder has the files of its external data. */
  readonly content?: Uint8Array;
  readonly providers: readonly ExecutionProvider[];
  readonly strict: boolean;
  readonly sessionOptions: Readonly<Record<string, unknown>>;
  /** Inputs with a default in the model's file that requests may leave out. */
  readonly defaultInputs?: readonly string[];
  /** Inputs that have no dimensions in the model's file. */
  readonly scalars: readonly string[];
  /** Inputs whose rank the model's file leaves open. */
  readonly ranksUnknown: readonly string[];
  /** Options that only the engine `native` uses. */
  readonly native: NativeOptions;
}

/** Options that only the engine `native` can follow. */
export type NativeOptions = Pick<
  OnnxRuntimeOptions,
  "library" | "providerLibraries" | "runConfig" | "globalThreads"
>;

/**
 * Names the options that only the engine `native` can follow, for texts. Empty if there are none.
 */
export function nativeOnly({
  library,
  providerLibraries,
  runConfig,
  globalThreads,
  executionProviders = [],
}: Omit<OnnxRuntimeOptions, "model">): readonly string[] {
  return [
    ...Object.keys(definedMembers({ library, providerLibraries, runConfig, globalThreads })),
    ...executionProviders.flatMap((provider) => notPassed(provider)),
  ];
}

function notPassed(provider: ExecutionProvider): readonly string[] {
  if (typeof provider === "string") return [];
  const { name, deviceId: _deviceId, ...options } = provider;
  const passed = Object.hasOwn(PASSED, name) ? PASSED[name]! : [];
  return Object.keys(options)
    .filter((key) => !passed.includes(key))
    .map((key) => `${name}.${key}`);
}

/** The providers with the options that onnxruntime-node passes on to them. */
export function providersForWorker(providers: readonly ExecutionProvider[]): readonly ExecutionProvider[] {
  return providers.map((provider) => {
    const unused = notPassed(provider);
    if (typeof provider === "string" || unused.length === 0) return provider;
    const used = Object.entries(provider).filter(([key]) => !unused.includes(`${provider.name}.${key}`));
    return used.length === 1 ? provider.name : (Object.fromEntries(used) as ExecutionProvider);
  });
}

export function quoted(names: readonly string[]): string {
  return names.map((name) => `'${name}'`).join(", ");
}

/**
 * Reads the options of ONNX Runtime from a model's configuration: `optimization.graph.level`, `optimization.cuda.graphs`,
 * its execution accelerators, and the parameters `intra_op_thread_count`, `inter_op_thread_count`, `execution_mode`,
 * `enable_mem_arena`, `enable_mem_pattern`, `memory.enable_memory_arena_shrinkage` and those of CUDA. Parameters that
 * begin with `session.`, `optimization.` or `mlas.` are entries of ONNX Runtime's session configuration. Our own are
 * `engine`, `library`, `strict_execution_providers` and `log_severity_level`.
 *
 * @param settings of the backend; they may hold thread counts for all models, `engine`, `library`, and the libraries of
 * plug-in providers: `provider-library.<name>`
 * @throws TritonError INVALID_ARG for an invalid value.
 */
export function onnxOptionsOf(
  config: ModelConfig,
  settings: Readonly<Record<string, string>>,
): Omit<OnnxRuntimeOptions, "model"> {
  const mode = executionMode(config);
  const intra = count(config, "intra_op_thread_count", settings);
  const inter = count(config, "inter_op_thread_count", settings);
  const shrinkage = ONNX_PARAMETERS.text({ config }, SHRINKAGE);
  return definedMembers({
    graphOptimizationLevel: LEVELS.get(config.optimization?.graph?.level ?? 0) ?? ("all" as const),
    executionMode: mode,
    intraOpNumThreads: intra > 0 ? intra : undefined,
    interOpNumThreads: inter > 0 ? inter : undefined,
    strictProviders: flag(config, "strict_execution_providers"),
    enableCpuMemArena: flag(config, "enable_mem_arena"),
    enableMemPattern: flag(config, "enable_mem_pattern"),
    executionProviders: requestedProviders(config),
    providerLibraries: providerLibraries(settings),
    sessionConfig: sessionConfig(config),
    runConfig: shrinkage === undefined ? undefined : { [SHRINKAGE]: shrinkage },
    globalThreads: globalThreads(settings),
    logSeverityLevel: severityLevel(config),
    library: ONNX_PARAMETERS.text({ config, settings }, "library"),
    // The backend checks it.
    engine: ONNX_PARAMETERS.text({ config, settings }, "engine") as OnnxEngine | undefined,
  });
}

/** The settings `provider-library.<name>`. */
function providerLibraries(
  settings: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> | undefined {
  const prefix = "provider-library.";
  const entries = Object.entries(settings).filter(([key]) => key.startsWith(prefix));
  if (entries.length === 0) return undefined;
  return Object.fromEntries(entries.map(([key, path]) => [key.slice(prefix.length), path]));
}

/** As Triton, takes the sizes of global thread pools only from the settings of the backend. */
function globalThreads(settings: Readonly<Record<string, string>>): GlobalThreads | undefined {
  if (settings["enable-global-threadpool"] !== "1") return undefined;
  const of = (key: string) => Math.max(0, integer(settings[key] ?? "0"));
  return { intra: of("intra_op_thread_count"), inter: of("inter_op_thread_count") };
}

const LEVELS: ReadonlyMap<number, "basic" | "extended" | "disabled"> = new Map([
  [-1, "basic"],
  [1, "extended"],
  [2, "disabled"],
]);

function sessionConfig(config: ModelConfig): Readonly<Record<string, string>> | undefined {
  const entries = ONNX_PARAMETERS.texts({ config }, "session.*", "optimization.*", "mlas.*");
  return entries.length === 0 ? undefined : Object.fromEntries(entries);
}

function severityLevel(config: ModelConfig): OnnxRuntimeOptions["logSeverityLevel"] {
  if (ONNX_PARAMETERS.text({ config }, "log_severity_level") === undefined) return undefined;
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
  config: ModelConfig,
  key: Parameters<typeof ONNX_PARAMETERS.text>[1],
  settings: Readonly<Record<string, string>> = {},
): number {
  return integer(ONNX_PARAMETERS.text({ config }, key) ?? settings[key] ?? "0");
}

function integer(text: string): number {
  const value = Number(text);
  if (/^\s*[+-]?\d+$/.test(text) && Number.isSafeInteger(value)) return value;
  throw errorFor("INVALID_CONFIG", `failed to convert '${text}' to integral number`);
}

function flag(config: ModelConfig, key: Parameters<typeof ONNX_PARAMETERS.text>[1]): boolean | undefined {
  const text = ONNX_PARAMETERS.text({ config }, key);
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

/** The options that onnxruntime-node passes on, by provider. */
const PASSED: Readonly<Record<string, readonly string[]>> = {
  webgpu: WEBGPU,
  qnn: ["backendType", "backendPath"],
};

/**
 * The providers that `optimization.execution_accelerators` and the parameters of CUDA request, by ONNX Runtime's names.
 * GPU providers come before CPU providers; the plain device is last.
 *
 * @returns undefined when none is requested
 * @throws TritonError INVALID_ARG for an unknown provider or parameter, with Triton's text
 */
function requestedProviders(config: ModelConfig): ExecutionProvider[] | undefined {
  const { optimization, instanceGroup } = config;
  const { gpuExecutionAccelerator: gpu = [], cpuExecutionAccelerator: cpu = [] } =
    optimization?.executionAccelerators ?? {};
  const onGpu = instanceGroup.some(({ kind }) => kind === "KIND_GPU" || kind === "KIND_MODEL");
  // The processor is always the last provider: naming it chooses a precision, which rewrites the model.
  const asked = [...(onGpu ? gpu : []), ...cpu].filter(({ name }) => canonicalName(name) !== "cpu");
  const hasGpu = instanceGroup.some(({ kind }) => kind === "KIND_GPU");
  const cudaOptions = hasGpu ? { ...cudaGraphs(config), ...cudaParameters(config) } : {};
  const hasCuda = asked.some(({ name }) => name === "cuda");
  if (asked.length === 0 && Object.keys(cudaOptions).length === 0) return undefined;
  const providers = asked.map(({ name, parameters = {} }): ExecutionProvider => {
    if (!isKnownProvider(name)) {
      throw errorFor("INVALID_CONFIG", `unknown Execution Accelerator '${name}' is requested`);
    }
    const provider = canonicalName(name);
    if (provider === "tensorrt") return withOptions(provider, tensorrtOptions(parameters));
    if (provider !== "cuda") return withOptions(provider, parameters);
    const { precision_mode: _, ...others } = parameters;
    return withOptions(provider, { ...cudaOptions, ...others });
  });
  return [...providers, ...(onGpu && !hasCuda ? [withOptions("cuda", cudaOptions)] : []), "cpu"];
}

/**
 * The option of CUDA for `optimization.cuda.graphs`, if CUDA is the first provider.
 *
 * @throws TritonError INVALID_ARG for a `graph_spec` that cannot be
 */
function cudaGraphs(config: ModelConfig): Readonly<Record<string, string>> {
  const { cuda, executionAccelerators } = config.optimization ?? {};
  if (cuda?.graphs !== true) return {};
  graphSpecs(
    config,
    config.input.map(({ name }) => name),
  );
  // A provider before it would take nodes out of the graph, which ONNX Runtime refuses.
  const first = executionAccelerators?.gpuExecutionAccelerator[0]?.name ?? "cuda";
  if (canonicalName(first) !== "cuda") return {};
  return { enable_cuda_graph: "1" };
}

function withOptions(name: string, options: Readonly<Record<string, string>>): ExecutionProvider {
  return Object.keys(options).length === 0 ? name : { name, ...options };
}

/** Values of the parameters of CUDA that are the number of a choice. */
const CHOICES: Readonly<Record<string, readonly string[]>> = {
  cudnn_conv_algo_search: ["EXHAUSTIVE", "HEURISTIC", "DEFAULT"],
  arena_extend_strategy: ["kNextPowerOfTwo", "kSameAsRequested"],
};

/**
 * Options of CUDA that are parameters of the model. Triton has deprecated them in favour of the accelerator `cuda`.
 *
 * @throws TritonError INVALID_ARG for values that Triton rejects
 */
function cudaParameters(config: ModelConfig): Readonly<Record<string, string>> {
  const options: Record<string, string> = {};
  for (const key of CUDA_PARAMETERS) {
    const value = ONNX_PARAMETERS.text({ config }, key);
    if (value === undefined) continue;
    const choices = CHOICES[key];
    const chosen =
      choices === undefined ? value : /^\s*\d+$/.test(value) ? choices[Number(value)] : undefined;
    if (chosen === undefined) {
      throw errorFor("INVALID_CONFIG", `unsupported ${key} value '${value}' is requested`);
    }
    options[key] = chosen;
  }
  return options;
}

/** ONNX Runtime's names of TensorRT's options that Triton names otherwise. */
const RENAMED: Readonly<Record<string, string>> = {
  max_workspace_size_bytes: "trt_max_workspace_size",
  int8_calibration_table_name: "trt_int8_calibration_table_name",
  int8_use_native_calibration_table: "trt_int8_use_native_calibration_table",
};

/** Options of TensorRT that Triton passes on under their own names. */
const SAME_NAME: ReadonlySet<string> = new Set([
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

/** The option of TensorRT that each precision switches on. */
const PRECISIONS: Readonly<Record<string, string | undefined>> = {
  FP32: undefined,
  FP16: "trt_fp16_enable",
  BF16: "trt_bf16_enable",
  INT8: "trt_int8_enable",
};

/** @throws TritonError INVALID_ARG for parameters that Triton's onnxruntime backend rejects, with its text */
function tensorrtOptions(parameters: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const options: Record<string, string> = {};
  for (const [key, value] of Object.entries(parameters)) {
    const name = Object.hasOwn(RENAMED, key) ? RENAMED[key] : SAME_NAME.has(key) ? key : undefined;
    if (name !== undefined) options[name] = value;
    else if (key !== "precision_mode") {
      const text = `unknown parameter '${key}' is provided for TensorRT Execution Accelerator`;
      throw errorFor("INVALID_CONFIG", text);
    } else if (!Object.hasOwn(PRECISIONS, value)) {
      throw errorFor("INVALID_CONFIG", `unsupported precision mode '${value}' is requested`);
    } else if (PRECISIONS[value] !== undefined) options[PRECISIONS[value]] = "1";
  }
  return options;
}
