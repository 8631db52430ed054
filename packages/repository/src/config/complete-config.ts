import { AutoCompleteConfig } from "@tritonjs/core/backend";
import {
  batchInputTypeProblems,
  completeInstanceGroups,
  ENSEMBLE_PLATFORM,
  type Gpus,
  instanceGroupProblems,
  NO_GPUS,
  normalizeConfig,
  responseCacheProblems,
  schedulingProblems,
  sequenceTensors,
  sizeProblems,
  validateModelIo,
  validateSequenceStates,
} from "@tritonjs/core/extension";
import {
  type DescribedTensor,
  errorFor,
  MOST_TENSORS,
  type ModelConfig,
  type ModelInput,
  type ModelOutput,
  type Shape,
  shapeToString,
  type TensorSpec,
  throwProblems,
  toConfigDataType,
} from "@tritonjs/protocol";
import {
  defaultDynamicBatching,
  defaultOptimization,
  emptyConfig,
  emptyModelInput,
  emptyModelOutput,
} from "@tritonjs/protocol/config";
import { fieldProblems } from "./field-support.js";

/** Facts about a model's directory that its configuration depends on. */
export interface ConfigSource {
  /** Name of the directory, which is the name of the model. */
  readonly modelName: string;
  /** Entries of the first version directory, in which directories may end in `/`. Empty without such a directory. */
  readonly versionFiles: readonly string[];
  /** Whether the model may complete its configuration. If not, its tensors must be complete as written. */
  readonly autoComplete: boolean;
}

/**
 * Completes a configuration as far as possible without opening the model, and checks it, as Triton does while it reads
 * a repository. It fills name, backend, platform, file name, version policy, preferred batch sizes and the like. It
 * does not fill instance groups and tensors.
 *
 * @param written configuration from config.pbtxt or the load request; undefined without either
 * @throws TritonError INVALID_ARG with one line for each problem, in Triton's order: the first line is the one that
 * Triton reports
 */
export function prepareConfig(written: ModelConfig | undefined, source: ConfigSource): ModelConfig {
  const config = structuredClone(written ?? emptyConfig());
  config.name ||= source.modelName;
  const most = Math.max(config.input.length, config.output.length);
  if (most > MOST_TENSORS) {
    const text = `model '${config.name}': expected at most ${MOST_TENSORS} inputs, and outputs, got ${most}`;
    throw errorFor("INVALID_CONFIG", text);
  }
  const filled = fillBackendFields(config, source.versionFiles);
  const prepared = withDefaults(filled);
  const problems = validateModelConfig(prepared);
  // An ensemble that calls itself decoupled may not be cached, even though its members decide whether it is.
  if (filled.ensembleScheduling !== undefined) problems.push(...responseCacheProblems(filled));
  if (!source.autoComplete) problems.push(...validateModelIo(prepared));
  if (prepared.name !== source.modelName) {
    problems.push(
      `unexpected directory name '${source.modelName}' for model '${prepared.name}', directory name must equal model name`,
    );
  }
  throwProblems(problems);
  return prepared;
}

/** Fills fields that follow from others, and fields that Triton shows with a default. */
function withDefaults(config: ModelConfig): ModelConfig {
  const normal: ModelConfig = {
    ...normalizeConfig(config),
    versionPolicy: config.versionPolicy ?? { latest: { numVersions: 1 } },
  };
  if (config.ensembleScheduling !== undefined) {
    // Its members decide whether an ensemble is decoupled, whatever is written.
    return { ...normal, modelTransactionPolicy: { decoupled: false } };
  }
  const defaults = defaultOptimization();
  const { inputPinnedMemory, outputPinnedMemory } = defaults;
  normal.optimization = { inputPinnedMemory, outputPinnedMemory, ...(config.optimization ?? defaults) };
  return normal;
}

/** Settings of the server that affect completion. */
export interface CompleteOptions {
  /** Whether the model may complete its configuration. */
  readonly autoComplete: boolean;
  /** Largest batch of a model that can batch but gives no size. @default 4, as Triton's */
  readonly defaultMaxBatchSize?: number;
  /** Whether a configuration was written at all. @default true */
  readonly isWritten?: boolean;
  /** GPUs that instance groups may name. @default none */
  readonly gpus?: Gpus;
  /** Called with a text for each filled-in value that may be unexpected. */
  readonly warn?: (text: string) => void;
}

/**
 * Completes a prepared configuration from the model itself, and checks the result, as Triton does when it creates the
 * model.
 *
 * @param model description from the model file, or the result of `autoCompleteConfig` of a JavaScript model for the
 * prepared configuration; undefined for a model that does not describe itself
 * @throws TritonError with one line for each problem, in Triton's order: the first line is the one that Triton reports
 */
export function completeConfig(
  prepared: ModelConfig,
  model: FileDescription | AutoCompleteConfig | undefined,
  options: CompleteOptions,
): ModelConfig {
  const { name } = prepared;
  const isFile = model !== undefined && !(model instanceof AutoCompleteConfig);
  let config = prepared;
  if (options.autoComplete && model instanceof AutoCompleteConfig) config = model.config;
  else if (options.autoComplete && isFile) config = completeFromFile(prepared, model, options);
  if (options.isWritten === false && model === undefined) {
    throw errorFor("MISSING_CONFIG", `model configuration is not provided for model '${name}'`);
  }
  const gpus = options.gpus ?? NO_GPUS;
  config = completeInstanceGroups(withDefaults(config), gpus);
  const { sequenceBatching: sequences } = config;
  const problems = [
    ...batchInputTypeProblems(config),
    ...validateModelConfig(config),
    ...validateModelIo(config),
    ...(config.ensembleScheduling === undefined ? instanceGroupProblems(config, gpus) : []),
    ...fieldProblems(config),
    ...(sequences === undefined ? [] : validateSequenceStates(config, sequences)),
  ];
  if (problems.length === 0 && isFile) problems.push(...checkOnnxTensors(config, model));
  throwProblems(problems);
  return config;
}

/** Lists the problems that Triton finds before it looks at the model, with its texts and in its order. */
function validateModelConfig(config: ModelConfig): string[] {
  const problems = config.name === "" ? ["model configuration must specify 'name'"] : [];
  return [...problems, ...backendProblems(config), ...sizeProblems(config), ...schedulingProblems(config)];
}

/** A kind of model file: its backend, platform and name. */
interface FileKind {
  readonly backend: string;
  readonly platform: string;
  readonly filename: string;
  readonly only?: "file" | "directory";
  /** True for the kind of a backend with several, when nothing tells which. */
  readonly usual?: true;
}

/** The kinds in Triton's order. The first one that matches decides. */
const FILE_KINDS: readonly FileKind[] = [
  { backend: "tensorflow", platform: "tensorflow_graphdef", filename: "model.graphdef", only: "file" },
  {
    backend: "tensorflow",
    platform: "tensorflow_savedmodel",
    filename: "model.savedmodel",
    only: "directory",
  },
  { backend: "tensorrt", platform: "tensorrt_plan", filename: "model.plan", only: "file" },
  { backend: "onnxruntime", platform: "onnxruntime_onnx", filename: "model.onnx" },
  { backend: "openvino", platform: "", filename: "model.xml" },
  { backend: "pytorch", platform: "pytorch_libtorch", filename: "model.pt", only: "file", usual: true },
  { backend: "pytorch", platform: "libtorch", filename: "model.pt", only: "file" },
  { backend: "pytorch", platform: "torch_aoti", filename: "model.pt2", only: "file" },
  { backend: "python", platform: "", filename: "model.py" },
  // Kinds of this library, which Triton does not have.
  { backend: "tensorflow", platform: "tensorflow_tfjs", filename: "model.json", only: "file" },
  { backend: "tensorflow", platform: "tensorflow_tfjs", filename: "model.keras", only: "file" },
  { backend: "tensorflow", platform: "tensorflow_tfjs", filename: "model.h5", only: "file" },
  { backend: "javascript", platform: "", filename: "model.js", only: "file" },
  { backend: "javascript", platform: "", filename: "model.mjs", only: "file" },
  { backend: "javascript", platform: "", filename: "model.ts", only: "file" },
];

/**
 * Fills `backend`, `platform` and `default_model_filename` from each other, from the names of the files in the first
 * version directory, or from a model name of the form `model.<backend>`.
 *
 * @param files names in the version directory; names of directories may end in `/`
 * @throws TritonError INVALID_ARG when the backend of the model cannot be determined
 */
function fillBackendFields(config: ModelConfig, files: readonly string[]): ModelConfig {
  const { backend, platform, defaultModelFilename, name } = config;
  const isNothingSaid = backend === "" && platform === "" && defaultModelFilename === "";
  const kind =
    backend === ""
      ? FILE_KINDS.find((candidate) => tells(candidate, config, files))
      : kindOfBackend(config, files);
  if (kind !== undefined) {
    // The program of a backend decides which of a model's files it reads.
    const filename = config.runtime.endsWith(".py") ? "" : kind.filename;
    return {
      ...config,
      backend: kind.backend,
      platform: platform || kind.platform,
      defaultModelFilename: defaultModelFilename || filename,
    };
  }
  if (!isNothingSaid) return config;
  const dot = name.indexOf(".");
  if (dot < 0) {
    throw errorFor(
      "INVALID_CONFIG",
      `Invalid model name: Could not determine backend for model '${name}' with no backend in model configuration. ` +
        "Expected model name of the form 'model.<backend_name>'.",
    );
  }
  const named = name.slice(dot + 1);
  return { ...config, backend: named, defaultModelFilename: `model.${named}` };
}

function tells(kind: FileKind, config: ModelConfig, files: readonly string[]): boolean {
  const { platform, defaultModelFilename } = config;
  if (platform !== "" && platform === kind.platform) return true;
  if (defaultModelFilename !== "") return defaultModelFilename === kind.filename;
  return platform === "" && isThere(kind, files);
}

function kindOfBackend(config: ModelConfig, files: readonly string[]): FileKind | undefined {
  const kinds = FILE_KINDS.filter(({ backend }) => backend === config.backend);
  // Only some backends have more than one kind of file.
  if (kinds.length < 2) return kinds[0];
  return kinds.find((kind) => tells(kind, config, files)) ?? kinds.find(({ usual }) => usual);
}

function isThere({ filename, only }: FileKind, files: readonly string[]): boolean {
  const isFile = files.includes(filename);
  const isDirectory = files.includes(`${filename}/`);
  return isFile || (isDirectory && only !== "file");
}

function backendProblems({ name, backend, platform }: ModelConfig): string[] {
  if (backend === "" && platform !== ENSEMBLE_PLATFORM) {
    // The first words are Triton's, which has no Caffe2 any more either.
    const hint =
      platform === "caffe2_netdef"
        ? ": Caffe2 does not run here; export the network from PyTorch to ONNX, and use backend 'onnxruntime'"
        : "";
    return [`unexpected platform type '${platform}' for ${name}${hint}`];
  }
  const platforms = FILE_KINDS.filter((kind) => kind.backend === backend && kind.platform !== "");
  // A backend unknown to Triton accepts any platform. Problems of an ensemble are reported elsewhere.
  return platforms.length === 0 ||
    platform === ENSEMBLE_PLATFORM ||
    platforms.some((kind) => kind.platform === platform)
    ? []
    : [`unexpected 'platform' and 'backend' pair, got:${platform}, ${backend}`];
}

/** The tensors of a model file, with all their dimensions. */
export interface FileDescription {
  readonly inputs: readonly DescribedTensor[];
  readonly outputs: readonly DescribedTensor[];
  /** Inputs with a default, for optional inputs of a configuration. */
  readonly optionalInputs?: readonly DescribedTensor[];
}

/** Inputs of the completion from a file, besides the file. */
interface FileCompletionOptions {
  readonly defaultMaxBatchSize?: number;
  readonly warn?: (text: string) => void;
}

/** Triton's largest batch of a model whose configuration gives none. */
export const TRITON_DEFAULT_MAX_BATCH_SIZE = 4;

/**
 * Completes a configuration from a model file by the rules of Triton's onnxruntime backend. If both inputs and outputs
 * are written, nothing is completed. Otherwise the model batches if the first dimension of every tensor is variable:
 * with the default size unless one is written, and dynamically unless another scheduler is written. Missing inputs and
 * outputs are taken from the file. Scalars and tensors of unknown rank get dims [1].
 *
 * @throws TritonError INVALID_ARG when a batch size is written for a model that cannot batch
 */
function completeFromFile(
  config: ModelConfig,
  file: FileDescription,
  { defaultMaxBatchSize = TRITON_DEFAULT_MAX_BATCH_SIZE, warn }: FileCompletionOptions,
): ModelConfig {
  const hasInputs = config.input.length + config.batchInput.length > 0;
  const hasOutputs = config.output.length > 0;
  if (hasInputs && hasOutputs) return config;
  const batches = [...file.inputs, ...file.outputs].every(({ shape }) => shape[0] === -1);
  const completed = { ...config };
  if (batches) {
    if (config.maxBatchSize === 0) {
      completed.maxBatchSize = Math.max(0, defaultMaxBatchSize);
      warn?.(
        `autofilled max_batch_size to ${completed.maxBatchSize} for model '${config.name}' since batching is ` +
          "supported but no max_batch_size is specified in model configuration. Must specify max_batch_size to " +
          "utilize autofill with a larger max batch size",
      );
    }
    const isScheduled = config.dynamicBatching ?? config.sequenceBatching;
    if (completed.maxBatchSize > 1 && isScheduled === undefined) {
      completed.dynamicBatching = defaultDynamicBatching();
    }
  } else if (config.maxBatchSize !== 0) {
    throw errorFor(
      "INVALID_CONFIG",
      `autofill failed for model '${config.name}': model does not support batching while non-zero max_batch_size is ` +
        "specified",
    );
  }
  const dimsOf = (spec: DescribedTensor) => {
    if (spec.rankUnknown) {
      warn?.(
        `autofilled dims [1] for tensor '${spec.name}' of model '${config.name}': its file does not give the number of ` +
          "dimensions, and ONNX Runtime cannot infer it. If the tensor has other dims, set them in the model configuration",
      );
    }
    return configDims(spec, completed.maxBatchSize);
  };
  if (!hasInputs) {
    // Tensors that the sequence batcher makes are not inputs of requests.
    const own = new Set(sequenceTensors(config.sequenceBatching).inputs);
    completed.input = file.inputs
      .filter(({ name }) => !own.has(name))
      .map((spec) => ({ ...emptyModelInput(), ...dimsOf(spec) }));
  }
  if (!hasOutputs) {
    const own = new Set(sequenceTensors(config.sequenceBatching).outputs);
    completed.output = file.outputs
      .filter(({ name }) => !own.has(name))
      .map((spec) => ({ ...emptyModelOutput(), ...dimsOf(spec) }));
  }
  return completed;
}

/** A configuration has no tensor without dims. A tensor that has no dims besides the batch axis is shown as [1]. */
function configDims({ name, dtype, shape }: TensorSpec, maxBatchSize: number) {
  const dims = configurable(maxBatchSize > 0 ? shape.slice(1) : shape);
  const dataType = toConfigDataType(dtype);
  if (dims.length > 0) return { name, dataType, dims };
  return maxBatchSize > 0
    ? { name, dataType, dims: [1], reshape: { shape: [] } }
    : { name, dataType, dims: [1] };
}

/** Dimensions of 0, of tensors that are always empty, become -1: a configuration cannot express them. */
function configurable(shape: Shape): number[] {
  return shape.map((dim) => (dim === 0 ? -1 : dim));
}

/** Lists contradictions between a configuration and the model file, with the texts of Triton's onnxruntime backend. */
function checkOnnxTensors(config: ModelConfig, file: FileDescription): string[] {
  const model = config.name;
  const own = sequenceTensors(config.sequenceBatching);
  // An optional input replaces an initializer, which a session does not count as an input.
  const expected =
    config.input.filter(({ optional }) => !optional).length +
    config.batchInput.flatMap(({ targetName }) => targetName).length +
    own.inputs.length;
  const problems: string[] = [];
  if (expected !== file.inputs.length) {
    problems.push(
      `unable to load model '${model}', configuration expects ${expected} inputs, model provides ${file.inputs.length}`,
    );
  }
  for (const input of config.input) {
    const inFile = input.optional ? [...file.inputs, ...(file.optionalInputs ?? [])] : file.inputs;
    problems.push(...optionalProblems(config, input), ...tensorProblems(config, input, "input", inFile));
  }
  const scattered = new Set(config.batchOutput.flatMap(({ targetName }) => targetName));
  for (const output of config.output) {
    problems.push(...tensorProblems(config, output, "output", file.outputs, scattered.has(output.name)));
  }
  return problems;
}

function optionalProblems({ name: model, maxBatchSize }: ModelConfig, input: ModelInput): string[] {
  const { name, optional, allowRaggedBatch } = input;
  if (!optional) return [];
  if (maxBatchSize > 0) {
    const text = `optional input '${name}' is not supported for models that support batching`;
    return [`unable to load model '${model}', ${text}`];
  }
  return allowRaggedBatch
    ? [
        `unable to load model '${model}', configuration expects model provides input with shape [-1] for ragged input ` +
          `'${name}', which is not supported for optional input`,
      ]
    : [];
}

function tensorProblems(
  { name: model, maxBatchSize }: ModelConfig,
  tensor: ModelInput | ModelOutput,
  kind: "input" | "output",
  inFile: readonly DescribedTensor[],
  anyShape = false,
): string[] {
  const { name, dataType } = tensor;
  const spec = inFile.find((one) => one.name === name);
  if (spec === undefined) {
    const names = inFile.map((one) => one.name).sort();
    return [`unexpected inference ${kind} '${name}', allowed ${kind}s are: ${names.join(", ")}`];
  }
  const provided = toConfigDataType(spec.dtype);
  if (provided !== dataType) {
    return [
      `unable to load model '${model}', configuration expects datatype ${dataType} for ${kind} '${name}', model ` +
        `provides ${provided}`,
    ];
  }
  if (anyShape) return [];
  const shape = configurable(spec.shape);
  if ("allowRaggedBatch" in tensor && tensor.allowRaggedBatch) {
    return shape.length === 1 && shape[0] === -1
      ? []
      : [
          `unable to load model '${model}', configuration expects model provides input with shape [-1]  for ragged ` +
            `input '${name}', model provides ${shapeToString(shape)}`,
        ];
  }
  // The model may accept any configured dims of a tensor of unknown rank.
  if (spec.rankUnknown) return [];
  const dims = tensor.reshape?.shape ?? tensor.dims;
  if (shape.length === 0 && maxBatchSize === 0) return scalarProblems(model, name, dims);
  return shapeProblems(`model '${model}', tensor '${name}'`, shape, dims, maxBatchSize, kind === "output");
}

/** A configuration has no tensor without dims, so ones represent a scalar. */
function scalarProblems(model: string, name: string, dims: readonly number[]): string[] {
  if (dims.every((dim) => dim === 1)) return [];
  return [
    `unable to load model '${model}', scalar tensor '${name}', should only provide 1 in the model configuration when ` +
      `the model doesn't support batching. Model configuration provided: ${shapeToString(dims)}.`,
  ];
}

/** An input may be narrower than the file allows. An output must have the shape of the file. */
function shapeProblems(
  label: string,
  shape: Shape,
  dims: readonly number[],
  maxBatchSize: number,
  exact: boolean,
): string[] {
  const given = shapeToString(shape);
  const batches = maxBatchSize > 0;
  if (batches && shape[0] !== -1) {
    return [
      `${label}: for the model to support batching the shape should have at least 1 dimension and the first dimension ` +
        `must be -1; but shape expected by the model is ${given}`,
    ];
  }
  const full = batches ? [-1, ...dims] : [...dims];
  const agrees = (dim: number, axis: number) => dim === full[axis] || (!exact && dim === -1);
  if (shape.length === full.length && shape.every(agrees)) return [];
  const configured = batches
    ? "an initial batch dimension because max_batch_size > 0 followed by the explicit tensor shape, making complete shape"
    : "shape";
  return [
    `${label}: the model expects ${shape.length} dimensions (shape ${given}) but the model configuration specifies ` +
      `${full.length} dimensions (${configured} ${shapeToString(full)})`,
  ];
}
