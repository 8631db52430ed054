import { stat } from "node:fs/promises";
import { join } from "node:path";
import type { BackendFactory, ModelSource } from "@tritonjs/core/backend";
import { findModelFile, hostingOf, type ModelLocation } from "@tritonjs/core/backend";
import { notFound } from "@tritonjs/core/internal";
import { assertInside } from "@tritonjs/core/internal/worker";
import { definedMembers, errorOf, type ModelConfig, type TritonError } from "@tritonjs/protocol";
import { OnnxBackend } from "./onnx-backend.js";
import { checkExternalData } from "./onnx-file.js";
import type { ExecutionProvider, OnnxEngine, OnnxRuntimeOptions } from "./onnx-options.js";

/** The backend `onnxruntime` for models of a repository: `<version>/model.onnx`, or a directory with such a file. */
export const onnxRuntimeBackend: BackendFactory = (source) => openRepositoryModel(source);

function quoted(names: readonly string[]): string {
  return names.map((name) => `'${name}'`).join(", ");
}

async function openRepositoryModel(source: ModelSource, backendName?: string): Promise<OnnxBackend> {
  const model = await modelFile(source);
  await checkExternalData(source.directory, model);
  const { config, settings, warn } = source;
  const options = { model, onWarning: warn, ...optionsOf(config, settings, warn) };
  const endsBatches = (options.engine ?? "worker") !== "worker";
  const hosting = hostingOf(source, ["worker", "process"], !endsBatches);
  return new OnnxBackend(options, hosting, backendName);
}

async function modelFile(source: ModelLocation): Promise<string> {
  const { path, isDirectory } = await findModelFile(source, ["model.onnx"], notStatted);
  if (!isDirectory) return path;
  const inside = join(path, "model.onnx");
  const found = await stat(inside).catch(() => undefined);
  if (!found?.isFile()) throw notFound(inside, source.name);
  await assertInside(source.directory, inside);
  return inside;
}

/** Triton's onnxruntime backend first checks whether the file is a directory. */
function notStatted(path: string): TritonError {
  return errorOf("FILE_NOT_READABLE", `failed to stat file ${path}`);
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
export function optionsOf(
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
  throw errorOf("INVALID_CONFIG", "parameter 'log_severity_level': expected a number from 0 to 4");
}

const LEVELS_OF_SEVERITY = [0, 1, 2, 3, 4] as const;

function executionMode(config: ModelConfig): "sequential" | "parallel" {
  const mode = count(config, "execution_mode");
  if (mode === 0) return "sequential";
  if (mode === 1) return "parallel";
  const text = `Invalid configuration value provided. Expected values for  execution_mode are 0 or 1 but got ${mode} .`;
  throw errorOf("INVALID_CONFIG", text);
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
  throw errorOf("INVALID_CONFIG", `failed to convert '${text}' to integral number`);
}

function flag({ parameters }: ModelConfig, key: string): boolean | undefined {
  const text = parameters[key]?.stringValue;
  if (text === undefined) return undefined;
  if (/^(true|on|1)$/i.test(text)) return true;
  if (/^(false|off|0)$/i.test(text)) return false;
  throw errorOf("INVALID_CONFIG", `failed to convert '${text}' to boolean`);
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
      throw errorOf("INVALID_CONFIG", `unknown Execution Accelerator '${name}' is requested`);
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
      throw errorOf("INVALID_CONFIG", text);
    }
    if (key === "precision_mode" && !PRECISIONS.includes(value)) {
      throw errorOf("INVALID_CONFIG", `unsupported precision mode '${value}' is requested`);
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
      throw errorOf("INVALID_CONFIG", `unsupported ${key} value '${value}' is requested`);
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

/** Parameters of Triton's openvino backend that ONNX Runtime has under another name. */
const MAPPED: Readonly<Record<string, string>> = { INFERENCE_NUM_THREADS: "intra_op_thread_count" };

/** Its other parameters. They choose devices and plans of OpenVINO, or work around its fixed batch sizes. */
const IGNORED: readonly string[] = [
  "TARGET_DEVICE",
  "PERFORMANCE_HINT",
  "NUM_STREAMS",
  "COMPILATION_NUM_THREADS",
  "HINT_BF16",
  "CPU_EXTENSION_PATH",
  "SKIP_OV_DYNAMIC_BATCHSIZE",
  "ENABLE_BATCH_PADDING",
  "RESHAPE_IO_LAYERS",
];

/**
 * The backend `openvino` for models of a repository. ONNX Runtime runs its ONNX models: `default_model_filename:
 * "model.onnx"`. Other models are refused; the reason names the conversion.
 */
export const openvinoBackend: BackendFactory = async (source) => {
  const { config, name } = source;
  assertPlaced(config);
  const { path } = await findModelFile(source, ["model.xml"]);
  if (!path.endsWith(".onnx")) throw refused(source, path);
  const { parameters, ignored } = forOnnxRuntime(config);
  source.warn(`model '${name}': ONNX Runtime runs this model of backend 'openvino'`);
  if (ignored.length > 0) {
    source.warn(`model '${name}': parameters ${quoted(ignored)} of OpenVINO have no effect in ONNX Runtime`);
  }
  return openRepositoryModel({ ...source, config: { ...config, parameters } }, "openvino");
};

function assertPlaced({ instanceGroup }: ModelConfig): void {
  if (instanceGroup.every(({ kind }) => kind === "KIND_CPU" || kind === "KIND_AUTO")) return;
  throw errorOf("INVALID_CONFIG", "Triton OpenVINO backend supports only Kind CPU and AUTO");
}

/** The parameters as ONNX Runtime has them, and the names of the parameters without effect there. */
function forOnnxRuntime({ parameters }: ModelConfig) {
  const entries = Object.entries(parameters)
    .filter(([key]) => !IGNORED.includes(key))
    .map(([key, value]) => [Object.hasOwn(MAPPED, key) ? MAPPED[key]! : key, value] as const);
  return {
    parameters: Object.fromEntries(entries),
    ignored: IGNORED.filter((key) => Object.hasOwn(parameters, key)),
  };
}

const PADDLE = "paddle2onnx --model_dir <directory> --model_filename model.pdmodel --save_file model.onnx";
const SAVED_MODEL = "python -m tf2onnx.convert --saved-model <directory> --output model.onnx";

/** The error for a file that only OpenVINO reads: what to convert, and by which command. */
function refused({ name }: ModelSource, path: string): TritonError {
  const how = path.endsWith(".pdmodel")
    ? `convert it: ${PADDLE}`
    : path.endsWith(".saved_model")
      ? `convert it: ${SAVED_MODEL}`
      : "no program converts OpenVINO's own format back, so export the model that it was made from: torch.onnx.export, " +
        `${SAVED_MODEL}, ${PADDLE}`;
  const text =
    `model '${name}': '${path}' runs only in OpenVINO, which has no package for Node that installs without a download; ` +
    `${how}; then put model.onnx into the version directory and set default_model_filename: "model.onnx"`;
  return errorOf("MODEL_NOT_SUPPORTED", text);
}
